//! Words for things other than phones that have numbers, written as in [`phones`](super::phones).

/// Words that name a number right after them, and a bare one later in the same clause: "my order came late, 4155552671".
pub(in crate::filters::redact) const THINGS: &[(&str, &str)] = &[
    (
        "en",
        "order|orders|confirmation*|tracking*|timestamp*|shipment*|consignment*|waybill*|invoice|invoices|ticket|tickets|ref|reference|parcel|booking|\
         transaction|receipt|isbn-10|isbn-13|isbn|issn|ean|upc|gtin|barcode|sku|ids|uid|guid|uuid|hash|epoch|ts|amount|total|totals|price|sum|count|\
         counts|qty|quantity|serial|claim|batch|matter|meter|license|licence|version|firmware|release|revision|build|orcid|doi|imei|awb|container|dhl|\
         fedex|ups|usps|gls|vat|ein|budget|population|balance|fee|points|bytes|size|offset|seq|sequence|rows|cols|tokens|range|ns|ms|index|length|zip|zoom|\
         kilometers|usd|eur|gbp|cny|jpy|idr|chf|rp|debt|score|scored|record|records|row|chapter|user id|flight|iteration",
    ),
    (
        "de",
        "bestell*|rechnung*|kundenn*|vertrag*|sendung*|paket*|steuern*|betrag*|artikel*|aktenz*|konto*|bestellung|saldo",
    ),
    ("nl", "bestelling|factuur*"),
    (
        "nordic",
        "bestilling*|beställning*|ordre|tilau*|lasku*|faktur*",
    ),
    ("fr", "commande*|facture*|colis*|montant*|dossier|réf"),
    (
        "es, pt",
        "pedido*|factura*|fatura*|importe*|envío|guía|encomend*",
    ),
    ("it, ro", "ordine*|fattura*|comand*|comenz*|factură*"),
    (
        "pl, cs, sk, hu",
        "zamówien*|przesyłk*|objednáv*|objednavk*|zásilk*|rendelés*|számla*",
    ),
    (
        "sl, hr, sr, baltic",
        "narudž*|naroč*|račun*|наруџб*|поруџб*|рачун*|užsakym*|pasūtīj*|tellimus*",
    ),
    (
        "tr, id, vi",
        "sipariş*|pesanan*|porosi*|đơn hàng*|hóa đơn*|mã đơn*|don hang|hoa don|ma don",
    ),
    (
        "ru, uk, bg, el",
        "заказ*|счет*|счёт*|накладн*|посылк*|трек*|замовлен*|рахун*|поръчк*|фактур*|παραγγελ*|τιμολόγ*",
    ),
    (
        "zh",
        "订单|訂單|单号|單號|运单|運單|快递|编号|編號|流水|账号|帐号|帳號|金额|數量|数量|价格|合计|共计|发票|條形|条形|条码|邮编|批次",
    ),
    (
        "ja, ko",
        "注文|送り状|金額|請求書|주문|송장|택배|금액|청구서",
    ),
    (
        "ar, he, th, hi",
        "طلب*|الطلب*|فاتورة*|الفاتورة*|سفارش*|הזמנ*|חשבונית*|คำสั่งซื้อ|ใบแจ้งหนี้|ऑर्डर*",
    ),
    ("signs", "$|€|£|¥|₩|₹|№"),
];

/// Words that name a number only if it comes right after them: "reservation 4155552671" is no phone, "reservation for Ann,
/// 4155552671" may be.
pub(in crate::filters::redact) const NEXT_THINGS: &[(&str, &str)] = &[
    (
        "en",
        "gate pass|boarding pass|boarding|scooter|tender|donor|species|ohip|mprn|mpan|prn|health card|freight|dock|trailer|mold|mould|\
         drawing|rebate|pledge|specification|spec|paragraph|equation|appendix|exhibit|tract|district|ward|census|tariff|token|\
         parking ticket|citation|summons|warrant|inmate|offender|prisoner|student id|enrollment|seal no|hs code|tariff code|iso|\
         ledger|journal|cost center|cost centre|gl|purchase|requisition|rfq|sow|change request|pull request|commit|epic|sprint|defect|\
         episode|season|recording|isan|id|chapters|a/c|acct|case|account|customer|contract|policy|item|items|product|article|model|\
         part|payment|member|code|key|page|pages|room|customers|voucher|coupon|checksum|client|clients|patient|mrn|chart|rx|\
         prescription|employee|student|badge|docket|incident|inc|work order|wo|rma|quotation|project|membership|loyalty|\
         frequent flyer|passenger|ktn|gift card|gift|promo|redemption|activation|verification|passcode|password|pin|otp|teamviewer|\
         anydesk|itinerary|locator|pnr|wire|permit|reg|plate|vin|s/n|p/n|sn|pn|catalog|catalogue|stock|nsn|ndc|cas|pmid|oclc|lccn|\
         asset|device|sensor|meter reading|reading|inventory|contribution|document|folio|statement|subscription|subscriber|\
         registration number|appl|req|matter|dispute|remittance|manifest|bol|pallet|carton|crate|seal|bin|shelf|slot|gate|seat|wagon|\
         train|trains|bus|buses|tram|route|tail|hull|engine|chassis|frame|odometer|mileage|lottery|lotto|loto|bingo|jackpot|\
         euromillions|powerball|keno|winning numbers|numbers drawn|draw|raffle|patent|trademark|isrc|ismn|issue number|volume|vol|\
         roll|enrolment|exam|candidate|certificate|cert|diploma|specimen|sample|accession|recipe|subject|your ref|our ref|reservation|\
         po|grn|pos.|complaint|complaints|cheque|barcode|re:|asset tag|loan number",
    ),
    (
        "registers of companies and taxes",
        "iban|bic|swift|bic/swift|ibans|ибан|ιβαν|آيبان|الآيبان|الايبان|شبا|שיבא|inn|kpp|ogrn|snils|okpo|edrpou|bik|iin|unp|egn|eik|bulstat|afm|amka|gemi|siret|siren|duns|abn|acn|arbn|nip|regon|krs|pesel|\
         kvk|bsn|rsin|btw|cnpj|cpf|cep|rg|pis|cnh|renavam|ctps|tin|gln|npi|sscc|oid|nir|niss|nzbn|ird|tfn|bsb|utr|nhs|nino|hmrc|crn|\
         sin|aba|routing|sort code|ust|idnr|steuer|stnr|hrb|hra|handelsregister|uid-nr|ahv|blz|plz|svnr|tva|iva|p.iva|p. iva|\
         partita iva|c.f.|codice fiscale|cf|rea|ico|ičo|dič|ičdph|ič dph|r. č.|r.č.|rč|vs|ks|ss|cif|nif|nipc|dni|rut|rfc|curp|clabe|\
         nss|cuit|cuil|cbu|ruc|nit|cédula*|c.c.|αφμ|α.φ.μ.|αμκα|α.μ.κ.α.|γεμη|γ.ε.μη.|инн|кпп|огрн|огрнип|снилс|окпо|бик|р/с|к/с|л/с|\
         уин|омс|полис*|єдрпоу|едрпоу|іпн|рнокпп|унп|бин|иин|рнн|cui|cnp|j40|adószám*|adóazonosító*|taj|taj szám*|taj-szám*|oib|mbs|\
         pib|jmbg|emšo|davčna|ддс|еик|егн|булстат|едб|ембг|vkn|vergi*|tckn|tc kimlik*|t.c. kimlik*|kimlik*|mersi̇s|mersis|orgnr|\
         org.nr|organisationsnr|personnr|fødselsnr|cvr|cpr|y-tunnus*|hetu|kennitala|isikukood*|registrikood*|kmkr|personas kods|\
         asmens kodas|pvm|pvn|統一編號|統編|税号|稅號|マイナンバー|마이넘버|gstin|aadhaar*|aadhar*|आधार*|uan|epic|mst|mã số|cmnd|cccd|stk|số tài khoản|\
         npwp|nik|ktp|ssm|nric|uen|hkid|crs|trn|cnic|ntn|nid|kra|nuit|bvn|nuban|umid|sss|philhealth*|pagibig|eori|giin|isin|cusip|wkn|\
         valor|sedol|cage|imsi|iccid|esn|meid|icao|mmsi|orcid|asn|crc|pzn|gtin|ndc",
    ),
    (
        "de",
        "personalnummer|personalnr|ausweis*|*ausweis|garantie*|umsatz*|vers|modell*|ersatzteil*|schaden*|meldung*|*meldung|\
         transaktion*|wahlkreis*|tarif*|kapitel|seite|seiten|karton*|palette*|schließfach*|parkplatz*|kennzeichen*|führerschein*|\
         projekt*|kostenstelle*|aufgabe|prüfung*|zertifikat*|urkunde*|akte|akten*|anzeige*|bußgeld*|mahnung*|gutschrift*|storno*|\
         lastschrift*|abbuchung*|einzahlung*|auszahlung*|abo|abonnement*|anschluss|rezept*|patient*|befund*|probe|proben*|kurs|kurs*|\
         veranstaltung*|spiel*|ziehung*|passwort|kennwort|benutzer*|objekt*|exposé*|grundstück*|parzelle*|quittung*|gutschein*|\
         zähler*|zaehler*|mitgl*|kd|kdnr|kunde|kunden|rg|best.-nr|best-nr|best.nr|lieferschein*|auftrag*|angebot*|serien*|vorgang*|\
         referenz*|charge*|inventar*|gz|zeichen|aktenzeichen|geschäftszeichen|kassenzeichen|betreff|beleg*|bon|bescheid*|antrag*|\
         zahlung*|überweisung*|verwendungszweck|mandat*|gläubiger*|matrikel*|gewinnzahlen|lottozahlen|losnummer|gesamt*|summe|\
         postleitzahl|flurstück*|grundbuch*|bus|linie|linien|zug|gleis|flug|*nummer|*nummern|*nummeret|*nr|*kennzeichen|*zeichen|\
         *schein|*stand|*code|*kennung|versicherungsschein*|buchung|buchungs*|policen|policen-nr|lieferung|lagerplatz|az.|kassenbon|\
         reklamation|retoure|bonnummer",
    ),
    (
        "nl",
        "pasje|bonnen|garantie*|melding*|transactie*|model|onderdeel*|kaart*|incasso*|machtiging*|dossier*|project*|verzending*|\
         zending*|patiënt*|cursus*|wachtwoord|gebruiker*|vergunning*|kenteken*|aansluiting*|klant*|boeking*|contract*|meterstand*|\
         referentie*|kenmerk*|zaak*|bestelling*|ordernr|aanvraag*|offerte*|lidmaatschap*|rekening*|pakket*|postcode|artikel*|\
         onderwerp|*nummer|*nr|*code|ondernemings*|rijksregister*|polisnr|pasnummer|bonnummer",
    ),
    (
        "nordic",
        "faktura*|referanse*|referens*|journal*|pakke*|paket*|pakett*|måler*|mätar*|rekening*|bestilling*|billett*|biljett*|pakket*|\
         prosjekt*|projekt*|journalnr|passord|lösenord|adgangskode|bruker*|användar*|kurs*|pasient*|patient*|lasku*|maksu*|\
         kortin numero|lippu*|mittari*|malli*|takuu*|bokning*|kvitt*|kund*|kunde*|ärende*|order*|ocr*|bankgiro|plusgiro|postgiro|bg|\
         pg|medlem*|serie*|sag|sags*|sak|saks*|reg.nr|regnr|kontonr|postnr|asiaka*|viite*|sopimu*|sarja*|seuranta*|potila*|jäsen*|\
         laite*|rekisteri*|kenttä*|buss|rute|tog|tåg|*numero|*nro|*tunnus|*koodi|*nr|*nummer|*kod|*kode|pöntun*|reiknings*|mál*|\
         *númer|policenr|tili|varaus|bestillingsnr",
    ),
    (
        "fr",
        "fiscal|fiscale|compte*|allocataire*|imposition|d'imposition|permis|bon d'achat|virement*|matricule*|ticket*|pdl|prm|dépôt*|\
         modèle*|pièce*|mot de passe|identifiant*|séries|chapitre*|salle*|département*|fidélité|vitale|mandat*|chèque*|reçu*|\
         quittance*|transaction*|garantie*|incident*|formulaire*|version|pages|article*|paragraphe*|projet*|affaire*|procès-verbal|pv|\
         amende*|contravention*|plaque*|châssis|emplacement*|casier*|parcelle*|cadastre*|licence*|certificat*|diplôme*|élève*|\
         étudiant*|patient*|ordonnance*|échantillon*|analyse*|utilisateur*|membre*|colis|bordereau*|remboursement*|paiement*|\
         prélèvement*|abonnement*|client|cliente|contrat*|abonné*|série|suivi|adhérent*|référence*|devis|bon de commande|\
         bon de livraison|livraison|compteur*|relevé|sinistre*|immatriculation*|sécurité sociale|entreprise|d'entreprise|code postal|\
         cp|rcs|dossard|billet|vol|lignes|train|voiture|objet|tirage|loto|numéros gagnants|total|somme|réservation|police d'assurance|\
         ticket de caisse|code-barres|code|code client|avis d'imposition|numéro de lot",
    ),
    (
        "es",
        "justificante*|recibo*|sorteo*|solicitud*|reclamación*|ot|usuario*|identificador*|contraseña|clave|lote*|modelo*|pieza*|\
         garantía*|acta|actas|multa*|billete*|boleta*|boleto*|tiquete*|guía*|remito*|remesa*|transferencia*|depósito*|cheque*|\
         comprobante*|operación*|transacción*|autorización*|socio*|afiliad*|paciente*|alumno*|matricula*|receta*|muestra*|ensayo*|\
         proyecto*|partida*|tomo|folios|capítulo*|página*|sala*|asiento*|casillero*|taquilla*|parcela*|catastro*|licencia*|permiso*|\
         certificado*|placa*|chasis|código*|registro*|inscripción*|suministro*|consumo*|abono*|devolución*|envío*|paquete*|nómina*|\
         empleado*|legajo*|cliente*|contrato*|póliza*|poliza*|serie|seguimiento|localizador|cuenta*|expediente*|afiliación|colegiado|\
         siniestro*|matrícula*|ref|referencia*|presupuesto*|albarán*|código postal|cp|medidor|folio|trámite*|radicado*|línea de bus|\
         autobús|tren|vuelo|asunto|lotería|horario*|tarjeta de fidelidad|caso|reserva|orden|orden de trabajo|orden de compra|\
         vale de compra|incidencia",
    ),
    (
        "pt",
        "recibo*|guia*|código*|codigo*|ordem*|usuário*|utilizador*|identificador*|senha|lote*|modelo*|peça*|garantia*|solicitação*|\
         reclamação*|multa*|bilhete*|comprovante*|transferência*|depósito*|cheque*|transação*|autorização*|sócio*|beneficiári*|\
         utente*|paciente*|aluno*|matrícula*|receita*|amostra*|projeto*|capítulo*|página*|sala*|assento*|parcela*|licença*|alvará*|\
         certificado*|placa*|chassi|renavam|medidor*|instalação*|unidade consumidora|uc|devolução*|remessa*|envio*|funcionári*|\
         cadastro*|ficha*|pix|apólice*|apolice*|conta|processo*|protocolo*|contrato*|inscrição*|título*|nota fiscal|nfe|nf|boleto*|\
         seguro|sinistro*|rastreio|rastreamento|código postal|voo|assunto|mega-sena|horário*|contas|ocorrência|chamado",
    ),
    (
        "it",
        "bonifico*|cro|trn|pdr|abbonamento*|segnalazione*|identificativo*|sanitaria|modello*|pezzo*|garanzia*|richiesta*|reclamo*|\
         ordine*|ricevuta*|biglietto*|multa*|verbale*|assegno*|versamento*|transazione*|autorizzazione*|socio*|paziente*|studente*|\
         ricetta*|campione*|progetto*|capitolo*|pagina*|sala|armadietto*|parcella*|foglio*|particella*|catasto*|licenza*|patente*|\
         certificato*|telaio*|motore*|utenza*|fornitura*|reso*|pacco*|dipendente*|utente*|password|registrazione*|cedolino*|pratica*|\
         polizza*|contratto*|cliente*|serie|matricola*|protocollo*|prot|bolla|ddt|spedizione*|tessera*|rif|riferimento*|contatore*|\
         sinistro*|targa|scontrino*|bolletta*|codice*|cap|treno|volo|oggetto|lotto|superenalotto|orari*|prenotazione|collo|conto|\
         conto corrente",
    ),
    (
        "ro",
        "poliț*|bilet*|transfer*|tranzacț*|model*|piesă|piese|garanți*|defecțiun*|cerere*|proiect*|capitol*|pagina|pagini|locul|\
         parcel*|permis*|licenț*|certificat*|pacient*|rețet*|utilizator*|parola|legitimaț*|factur*|colet*|retur*|cupon*|chitanț*|\
         înmatricul*|înregistr*|cod*|card*|extras*|abonament*|client*|contract*|serie*|dosar*|cod|poliță*|polita|cont|contor*|tren|\
         zbor|loto|program|bon fiscal|bonul|rezervare|rezervarea|lot|lotul|sesizare|sesizarea|reclamația",
    ),
    (
        "pl",
        "identyfikator*|bilet*|mandat*|kwit*|pokwitowan*|przelew*|transakcj*|model*|część|części|gwarancj*|usterk*|projekt*|rozdział*|\
         miejsce|szafk*|działk*|pozwoleni*|licencj*|certyfikat*|pacjent*|próbk*|użytkownik*|hasło|indeks*|legitymacj*|album*|faktur*|\
         paczk*|zwrot*|kupon*|karnet*|ewidencj*|katalog*|kreskowy|odbioru|kod*|klient*|umow*|seryjn*|licznik*|wniosek*|wniosk*|spraw*|\
         sygn*|akt|konto|rachun*|paragon*|zlecen*|zgłoszen*|list przewozowy|pociąg|lotto|kod|kod pocztowy|psč|rezerwacja|rezerwacji|\
         rezerwację|polisa|polisy|polisę|recepta|recepty|partia|partii|strona|strony|konta",
    ),
    (
        "cs, sk",
        "jízdenk*|lístok|lístk*|letenk*|platb*|převod*|prevod*|transakc*|model*|díl|dílu|diel|šarž*|záruk*|projekt*|kapitol*|místo|\
         miesto|skříňk*|parcel*|povolen*|licenc*|certifik*|osvědčen*|pacient*|vzor*|uživatel*|heslo|index*|průkaz*|preukaz*|faktur*|\
         balík*|vratk*|kupón*|katalog*|evidenč*|karty|kartě|zásielk*|šek*|mzd*|osobní číslo|odběrn*|elektroměr*|plynoměr*|kód*|zákaz*|\
         smlouv*|zmluv*|sériov*|výrobní*|výrobné*|účet*|účtu|č. ú.|spis*|jednací*|čj|č.j.|pojist*|poist*|symbol*|doklad*|protokol*|\
         zakázk*|inventární*|rodné číslo|vlak|let|psč|sportka|otevřeno|otvorené|kód|poukaz*|rezervace|rezervácia|rezervácie|rezervaci|\
         recept|receptu|strana|strany",
    ),
    (
        "hu",
        "ügyfél*|ügyfel*|szerződés*|sorozat*|foglalás*|azonosító*|kötvény*|mérő*|utalvány*|cég*|irányítószám|lottó|nyitva|járat|vonat|\
         *szám|*számú|*azonosító|*kód|bizonylat*|ügyirat*|iktató*|biztosítási kötvény",
    ),
    (
        "sl, hr, sr",
        "ugovor*|pogodb*|kupc*|kupac*|šifr*|serijsk*|predmet*|zavarovaln*|članarin*|člansk*|narud*|pošiljk*|poziv na broj|žiro|racun*|\
         brojilo|vlak|let|otvoreno|radno vrijeme|matičn*|nalog*|polica|rezervacija|rezervacije|zadeva|zadeve",
    ),
    (
        "baltic",
        "sutart*|kliento|kliendi*|leping*|līgum*|klienta|sērijas|serijos|arve*|arvel*|broneering*|saskait*|sąskait*|rēķin*|siunt*|\
         sūtījum*|saadetis*|kodas|kods|kood|polise|polisas|rezervācija|rezervacija",
    ),
    (
        "tr, az",
        "talep*|müşteri*|abone*|poliçe*|takip*|seri|dosya*|fatura*|sözleşme*|kargo*|gönderi*|üye*|sicil*|barkod*|makbuz*|dekont*|\
         hesap*|iade*|bilet*|plaka*|başvuru*|evrak*|tren|sefer|uçuş|posta kodu|müştəri*|müqavilə*|sifariş*|rezervasyon|rezervasyon no|\
         rezervasyon kodu",
    ),
    (
        "id, ms, tl",
        "pelanggan*|kontrak*|booking|seri|pesanan*|resi*|rekening*|akaun*|tagihan*|faktur*|transaksi*|nasabah*|anggota*|meteran*|\
         invois*|tempahan*|pengguna*|tiket*|kereta*|kode|kod|bpjs*|kode pos|poskod*|kupon*|nomor polis|no polis",
    ),
    (
        "vi",
        "mã khách hàng|khách hàng|hợp đồng|mã hợp đồng|đặt chỗ|seri|số seri|giao dịch|mã giao dịch|mã vận đơn|vận đơn|mã số|tài khoản|\
         biển số|hồ sơ|mã|phiếu|bảo hiểm|chuyến bay|vé",
    ),
    (
        "ru",
        "отправлен*|квитанц*|обращен*|заявк*|заявлен*|договор*|полис*|клиент*|абонент*|серийн*|артикул*|инвентарн*|чек|чека|дело|лицев*|ттн|\
         протокол*|удостоверен*|билет*|рейс*|поезд*|автобус*|маршрут*|вагон*|участок*|кадастров*|страхов*|претензи*|претензия|код|\
         индекс*|ваучер*|купон*|промокод*|пропуск*|табельный|лото|тираж*|часы|открыто|штрихкод*|штрих-код*|бронь|брони|бронирование|\
         бронирования|броне",
    ),
    (
        "uk, bg, mk",
        "договор*|договір*|клієнт*|накладної|ттн|бронюв*|особов*|поліс*|квитк*|квиток*|справ*|заявк*|заяв*|серійн*|лічильник*|рейс*|потяг*|клиент*|абонат*|полица*|серия|сериен|нарачк*|нарачка|сметк*|фактур*|\
         партиден|дело|преписк*|товарителниц*",
    ),
    (
        "el",
        "πελάτ*|συμβολα*|παροχ*|κράτησ*|σειριακ*|σειράς|λογαριασμ*|αποστολ*|πρωτ*|πρωτόκολλ*|τ.κ.|τκ|κωδικ*|εισιτήρι*|μητρώ*|υπόθεσ*|\
         πτήσ*|λεωφορ*|ωράριο|λόττο",
    ),
    (
        "ar",
        "العميل*|عميل*|العقد*|عقد*|الحجز*|حجز*|التذكرة*|تذكرة*|المعاملة*|معاملة*|الشحنة*|شحنة*|البوليصة*|بوليصة*|وثيقة*|التسلسلي*|المرجع*|المرجعي*|مرجع*|الحساب*|حساب*|الضريبي*|السجل*|التجاري|الهوية*|هوية*|\
         الإقامة*|الإيصال*|إيصال*|القضية*|قضية*|الملف*|ملف*|التتبع*|تتبع*|الاشتراك*|العداد*|عداد*|الرحلة*|رحلة*|المشترك*|الموظف*|المريض*|الكود*|كود*|الرمز*|رمز*|البريدي|ريال|درهم|دينار|جنيه",
    ),
    (
        "fa, ur",
        "قرارداد*|مشتری*|رهگیری*|پیگیری*|پرونده*|حساب*|شناسه*|سریال*|بیمه*|بیمه‌نامه*|فاکتور*|مرسوله*|رزرو*|بلیط*|پرواز*|کد|کدپستی|\
         آرڈر*|اکاؤنٹ*|بل|شناختی",
    ),
    (
        "he",
        "לקוח*|הלקוח*|חשבון*|החשבון*|פוליס*|תיק*|הזמנה|ההזמנה|חוזה*|החוזה*|משלוח*|המשלוח*|אסמכת*|קבלה*|כרטיס*|ח.פ.|חפ|ח.פ|ע.מ.|ע.מ|\
         עוסק*|ת.ז.|ת.ז|זהות*|סידורי*|טיסה*|קוד*|מיקוד*|מונה*|עובד*|פנייה*|בקשה*|הפניה*",
    ),
    (
        "hi and others",
        "मीटर*|ग्राहक*|खाता*|खाते*|पॉलिसी*|बिल*|रसीद*|टिकट*|बुकिंग*|पीएनआर|आवेदन*|शिकायत*|कोड*|गाड़ी*|ट्रेन*|অর্ডার*|গ্রাহক*|হিসাব*|অ্যাকাউন্ট*|টিকিট*|বিল*|ট্র্যাকিং*|মিটার*|வாடிக்கையாளர்*|ஆர்டர்*|கணக்கு*|டிக்கெட்*|ఆర్డర్*|\
         ఖాతా*|కస్టమర్*|ಆರ್ಡರ್*|ಖಾತೆ*|ഓർഡർ*|അക്കൗണ്ട്*|ઓર્ડર*|ખાતા*|ਆਰਡਰ*|ਖਾਤਾ*|ऑर्डर*|खाते*|बिल*",
    ),
    (
        "zh",
        "客户|账户|帐户|会员卡号|礼品卡号|购物卡号|取件码|合同|保单|保單|会员|會員|交易|取件|提货|设备|设备号|序列|电表|電表|電錶|水表|水錶|戶號|病历|病例|航班|车次|車次|工号|学号|户号|准考证|房产证|档案|案件|案号|税号|社保|医保|银行|微信支付|\
         qq|qq号|qq群|车牌|牌号|合约|合約|票号|票據|收据|退款|型号|商品|商品コード|コード|货号|仓库|托盘|座位|彩票|双色球|开奖|营业时间|人民币|总计|工单|凭证|证书|证件|许可证|执照|备案|身份证|社会信用代码",
    ),
    (
        "ja",
        "お客様|会員|契約|製造|伝票|追跡|口座|便名|車番|〒|法人|品番|型番|顧客|社員|学籍|チケット|ロト|営業時間|領収|合計",
    ),
    (
        "ko",
        "계약|증권|운송장|회원|시리얼|일련|계좌|사업자|법인|사번|학번|영수증|우편|항공편|좌석|로또|영업시간|합계|차량|쿠폰|모델|제품|견적번호",
    ),
    (
        "th, lo, km, my",
        "ออเดอร์|คดี|หมายเลขคำสั่งซื้อ|หมายเลขคำสั่ง|ใบสั่งซื้อ|ใบสั่ง|ลูกค้า|สัญญา|รหัส|พัสดุ|กรมธรรม์|บัญชี|เลขที่|เลขประจำตัว|ผู้เสียภาษี|\
         บัตรประชาชน|การจอง|จองห้อง|ตั๋ว|เที่ยวบิน|ใบเสร็จ|ใบกำกับ|มิเตอร์|สมาชิก|ลอตเตอรี่|หวย|ทะเบียน|ລະຫັດ|ບັນຊີ|លេខកូដ|គណនី|\
         အော်ဒါ|အကောင့်",
    ),
    (
        "af, sw, ha, yo, zu and others",
        "challan|kontrat*|bestelnommer|*nommer|rekening*|polis*|akaunti*|oda|agizo|ankara|risiti|mkataba|tiketi|namba ya oda|nambari ya oda|lambar oda|oda|asusu|ọda|nọmba|i-oda|i-akhawunti|inombolo yokulandela|kontrato*|polisa*|\
         faktura*|faktur*|narudžb*|biljet*|شمارە",
    ),
    (
        "more documents and things that have numbers, Latin",
        "phone bill|phone bills|telephone bill|mobile bill|phone contract|phone plan|phone model|facture de téléphone|facture téléphone|factura del teléfono|factura de teléfono|conta de telefone|conta do telefone|bolletta del telefono|bolletta telefonica|rachunek za telefon|\
         bancaire|bancario|bancaria|bancário|bancária|bankowe|bankowego|carné de biblioteca|průkaz do knihovny|čtenářský průkaz|dosar daună|permis bibliotecă|comandă de lucru|šifra vrata|šifra proizvoda|koda vrat|koda napake|potrdil*|sluitkas|padala|case file|file number|imo|penalty notice|parcel of land|visa application|baggage tag|bag tag|luggage tag|claim check|microchip|chip number|storage unit|locker|lockers|loan|mortgage|lease|permit no|anfrage|reservierung|reservierungsn*|darlehen*|frachtbrief*|vorfall*|strafzettel*|\
         mietvertrag*|spendenquittung*|bibliotheksausweis|carte de bibliothèque|carte de fidélité|carte d'embarquement|bon cadeau|code porte|code erreur|digicode|consigne|carné*|préstamo*|cheque regalo|contenedor*|artículo*|denuncia*|visado*|alquiler|arriendo|\
         cacifo*|armário*|cartão da biblioteca|empréstimo*|orçamento*|vale presente|contentor|artigo*|ordem de serviço|prestito*|preventivo*|buono regalo|bagaglio*|articolo*|fascicolo*|tessera biblioteca|kluis*|track en trace|track & trace|bibliotheekpas|lening*|\
         cadeaubon*|perceel*|pakbon*|boete*|visum*|werkbon*|betalingskenmerk*|monster|skåp*|ansökan|lån*|licens*|offert*|fastighet*|följesedel*|böter|lott|arbetsorder*|hyreskontrakt*|lånekort|skap|søknad*|lisens*|tilbud*|transaksjon*|resept*|følgeseddel*|bot|lodd|kid-nummer|skab|ansøgning*|\
         bøde*|rykker*|lånerkort|lokero*|kaappi*|hakemu*|laina*|lupa*|tarjou*|tapahtuma*|resepti*|lähetyslista*|valitus*|sakko*|arpa*|viisumi*|näyte*|kuitti*|palautus*|skrytk*|kredyt*|ofert*|kontener*|kod do drzwi|kod błędu|wiza|wizy|dowód wpłaty|numer członkowski|numer inwentarzowy|\
         numer pracownika|numer bagażu|numer silnika|numer nadwozia|žádost*|půjčk*|nabídk*|kód dveří|kód chyby|dodací list|pokut*|vízum*|účtenk*|úvěr*|žiados*|pôžičk*|ponuk*|poukážk*|bloček|bločk*|úver*|szekrény*|hibajegy*|kérelem*|kérelm*|olvasójegy*|kölcsön*|garanci*|engedély*|ajánlat*|\
         tranzakció*|szállítólevél*|bírság*|sorsjegy*|vízum*|minta|munkalap*|nyugta|nyugtá*|hitel*|közlemény*|dulap*|dosar*|tichet*|număr matricol|număr membru|permis*|credit|creditul*|ofert*|marcă|cod ușă|cod eroare|cod produs|serie șasiu|aviz*|amend*|viză|vizei|probă|probei|împrumut*|\
         koli|kütüphane kartı|garanti belgesi|hediye çeki|parsel*|irsaliye*|iş emri*|ormarić*|šteta|štete|zahtev*|zahtjev*|kredit*|garancij*|dozvol*|ponuda|ponude|serija|serije|vaučer*|šifra*|kod greške|otpremnic*|žalb*|kazna|kazne|viza|vize|uzorak|uzork*|priznanic*|jamstv*|čestic*|prigovor*|potvrd*|\
         omaric*|škod*|zahtevek|številka stranke|števec|števc*|dovoljenj*|ponudb*|koda*|dobavnic*|pritožb*|kazen|vizum*|spintel*|žala|žalos|prašym*|skaitikl*|paskol*|leidim*|pasiūlym*|partij*|operacij*|receptas|byla|bylos|sklyp*|važtarašt*|bauda|baudos|mėgin*|kvitas|kvito|skapī*|paka|pakas|atlīdzīb*|\
         pieteikum*|skaitītāj*|aizdevum*|atļauj*|piedāvājum*|darījum*|konts|konta|recepte*|lieta|lietas|pavadzīm*|sods|vīza*|paraug*|kvīts|kvīt*|čeks|čeka|kapp|kapi|seerianumb*|pakk|paki|kahju*|taotlus*|liikmenumb*|poliis*|laen|laenu|luba|loa|pakkumi*|tehing*|retsept*|toimik*|veakood*|saateleht|\
         saatelehe|trahv*|viisa|proov|proovi|kviitung*|nim|nisn|kod baucar|kod pintu|kod ralat|locker ng|serial number ng|tracking number ng|sê-ri|hội viên|thẻ thư viện|số máy móc|phiếu giao hàng|paquet|sol·licitud|pòlissa|comptador|rebut|expedient|sluitkas*|raðnúmer|numri i llogarisë|dosje*|çështje*|\
         iş nömrəsi̇|kitabxana|chipnummer|stelnummer|kv. nr|kvittun*|beiðni*|umsókn*|trygging*|leyfi*|gjafabréf|lán|sekt|aikštel*|hyrje*|porosi*|kontratë*|biletë*|kërkes*",
    ),
    (
        "more documents and things that have numbers, other scripts",
        "پلاک ثبتی|ثبتی|شناسه پرداخت|دוח חניה|חניה|שיפרا|шкафче|шкафчет*|резервац*|щета|щети|електромер*|водомер*|кредит*|гаранц*|разрешителн*|оферт*|партид*|служебен номер|транзакц*|рецепт*|код за вратата|код на грешка|рама|глоб*|виза|визы|визе|проба|пробы|касова бележка|разписк*|заем|заема|συμβόλαι*|ντουλάπ*|ζημι*|αίτημα*|αιτήμα*|\
         αίτησ*|κάρτα βιβλιοθήκης|ασφαλιστήρι*|μετρητ*|δάνει*|εγγύησ*|άδεια|άδειας|προσφορ*|παρτίδ*|κουπόνι*|συναλλαγ*|συνταγ*|οικόπεδ*|πρόστιμ*|λαχεί*|βίζα|δείγμα*|απόδειξ*|χρέωσ*|ячейк*|шкафчик*|убыт*|зачётк*|зачетк*|заём|займ*|гаранти*|разрешени*|предложение|партия|партии|сертификат*|\
         платёж*|платеж*|код двери|код ошибки|код домофона|домофон*|двигател*|кузов*|контейнер*|штраф*|постановлен*|анализ*|наряд*|абонемент*|свидетельств*|карта лояльности|карты лояльности|место хранения|ордер*|лицензи*|акт|акта|комірк*|збит*|звернен*|заліков*|гаранті*|дозв*|дозвол*|пропозиц*|\
         партія|партії|сертифікат*|транзакці*|платіж*|код дверей|код помилки|двигун*|ділянк*|віза|візи|перепустк*|посвідчен*|свідоцтв*|ліценз*|уговор*|пакет*|ормарић*|штета|жалб*|казна|бројило|бројила|захтев*|дозвол*|потврд*|مكتبة|المكتبة|الباب|الخطأ|بوليصة الشحن|الشحن|أمر العمل|امر العمل|\
         رمز*|خزانة*|الخزانة*|قرض*|القرض*|ضمان*|الضمان*|رخصة*|الرخصة*|عينة*|العينة*|تأشيرة*|التأشيرة*|مخالفة*|المخالفة*|سند*|السند*|پلاک*|بارنامه*|اشتراک*|قبض*|شناسه ملی|کمد*|گارانتی*|لاکر|معاہدہ|رسید*|לוקר*|הלוקר|תביע*|התביעה|כרטיס קורא|הלוואה*|אחריות|רישיון*|הרישיון|הצעת מחיר|אצווה|שובר*|\
         השובר|עסקה*|העסקה|מרשם*|מכולה*|המכולה|שלדה*|השלדה|חלקה|גוש|מק\"ט|מקט|קנס*|הקנס|דוח*|הדוח|ויזה|דגימ*|הדגימה|תעודת*|ת\"ז|ח\"פ|柜子号码|处方号|處方號|发动机号|發動機號|户口本号|戶口名簿|标本号|標本號|样本号|样品号|机身号|主机号|房号|地番|領収書番号|오류코드|품번|\
         сериялық|шот|келісімшарт*|шкаф*|жөнелтілім*|өтініш*|есептегіш*|түбіртек*|нэхэмжлэх*|гэрээ*|сериал*|тасалбар*|өргөдл*|данс*|тоолуур*|የትዕዛዝ|ትዕዛዝ|የደረሰኝ|ደረሰኝ|የውል|ውል|የሂሳብ|ሂሳብ|የቲኬት|ቲኬት|ინვოის*|ხელშეკრულებ*|სერიული|გზავნილ*|ჯავშ*|ბილეთ*|განცხად*|კლიენტ*|პოლის*|მრიცხველ*|ანგარიშ*|საქმ*|ქვით*|\
         պայմանագ*|պահարան*|սերիական|առաքման|ամրագր*|տոմս*|դիմում*|հաշվիչ*|հաշիվ*|գործ|գործի|անդորրագ*|বিল|চুক্তি*|লকার*|সিরিয়াল*|সিরিয়াল*|বুকিং*|দাবি*|আবেদন*|রোল*|রোগীর|সদস্য*|পলিসি*|ঋণ*|লাইসেন্স*|লেনদেন*|মামলা*|চালান*|ভিসা*|রসিদ*|রেফারেন্স*|লকারের|সীল",
    ),
    (
        "orders and parcels",
        "delivery note|quote|estimate|csomag*|kiện hàng|đơn|buyurtma*|посилк*|пратк*|пошиљк*|тапсырыс*|захиалг*|δέμα*|պատվեր*|შეკვეთ*|חביל*|החביל*|طرد|الطرد|بسته|پارسل|पार्सल*|পার্সেল*|保险单|保險單|包裹|荷物|소포",
    ),
    (
        "complaints, Latin",
        "beschwerde*|klacht*|klage|klagesag*|reklamaatio*|reklamac*|reklamáci*|reclamați*|stížnost*|sťažnost*|panasz*|şikayet*|şikayət*|arıza kaydı|skund*|sūdzīb*|kaebus*|kvörtun*|khiếu nại|keluhan*|aduan*|malalamiko",
    ),
    (
        "complaints, other scripts",
        "жалоб*|скарг*|рекламац*|жалб*|оплакван*|παράπον*|καταγγελ*|תלונ*|شكوى|الشكوى|شکایت*|অভিযোগ*|புகார்*|ఫిర్యాదు*|ದೂರು*|പരാതി*|ફરિયાદ*|ร้องเรียน|投诉|投訴|苦情|민원|საჩივ*|բողոք*",
    ),
    (
        "currencies",
        "rs|rs.|tl|rm|ft|ksh|tsh|ush|kr|kr.|rp.|zł|kč|руб|грн|omr|bhd|jod|dzd|tnd|xof|xaf|ghs|etb|ugx|tzs|mnt|kgs|uzs|amd|azn|rsd|mkd|\
         mdl|byn|rub|npr|mmk|usd|eur|gbp|idr|inr|krw|vnd|brl|mxn|zar|sek|nok|dkk|pln|czk|huf|thb|myr|sgd|hkd|twd|aud|cad|nzd|chf|aed|\
         uah|jpy|cny|clp|pkr|egp|qar|kwd|ngn|kes|bgn|isk|kzt|lkr|bdt|rmb|btc|eth",
    ),
];

/// Ends of long words for offices and services, which have phones: "Rechnungsstelle".
pub(in crate::filters::redact) const OFFICES: &[&str] = &[
    "fragen",
    "abteilung",
    "büro",
    "annahme",
    "zentrale",
    "stelle",
    "service",
    "dienst",
    "center",
    "zentrum",
    "hotline",
    "afdeling",
    "avdelning",
    "avdeling",
    "tjänst",
    "tjeneste",
    "osasto",
    "palvelu",
    "osztály",
    "szolgálat",
    "iroda",
];

/// Ends of long words for what belongs to a phone and has numbers of its own: "Telefonrechnung".
pub(in crate::filters::redact) const BILLS: &[&str] = &[
    "abo",
    "abonnement",
    "avtal",
    "contract",
    "faktura",
    "lasku",
    "liittymä",
    "modell",
    "rechnung",
    "regning",
    "rekening",
    "räkning",
    "számla",
    "tarif",
    "vertrag",
];

/// Words for cards. Numbers right after them are checked as such.
pub(in crate::filters::redact) const CARDS: &[(&str, &str)] = &[
    (
        "latin",
        "card|cards|creditcard*|debitcard*|visa|mastercard|maestro|amex|karte|karten|*karte|*karten|kartennummer|*kartennummer|carte|carta|tarjeta*|cartão*|cartao*|kort|*kort|kaart|*kaart|karta|kartę|karty|\
         kártya*|kart|kortti*|*kortti|thẻ|kartu",
    ),
    (
        "others",
        "карт*|κάρτα*|κάρτας|بطاقة*|البطاقة*|کارت*|אשראי|कार्ड*|কার্ড*|บัตรเครดิต|信用卡|银行卡|カード|카드",
    ),
];

/// Words of programs, logs and counts: a bare number right after them is no phone, one in groups may be.
pub(in crate::filters::redact) const BARE_THINGS: &[(&str, &str)] = &[(
    "en",
    "issue|bug|job|jobs|request|requests|req|log|lot|event|report|tag|course|table|photo|image|video|line|postcode|postal code|postleitzahl|error|errors|worker|workers|rev|nonce|seed|block|blocks|sector|inode|etag|session|sessions|txn|tx|cache|memory|mem|heap|\
     stack|rss|pid|ppid|tid|thread|packet|packets|frames|commit|signature|counter|query|event|span|trace|register|shard|partition|kernel|\
     channel|chat|user|users|tweet|post|comment|node|nodes|way|relation|geoname|run|pipeline|task|tasks|object|entry|level|prime|primes|factorial|fibonacci|\
     result|answer|goroutine|elapsed|took|used|received|sent|skipped|processed|lsn|gtid|xid|ino|uint32_max|max|min|limit|capacity|address|addr|pointer|ptr|\
     process|step|steps|iter|epoch|lat|lon|lng|hashcode|hash code|tel aviv|tel-aviv|telaviv|integer|int|long|ulong|uint|num|number of|digits of|random|bit|bits|byte|status|\
     exit|bucket|bucketid|slot|sequence number|snowflake|followers|likes|views|votes|downloads|visitors|parameters|params|neurons|years|light years|about|approximately|approx|\
     roughly|over|nearly|almost|exceeds|exceeded|equals|divided|times|plus|minus|modulo|mod|sqrt|log|exp|return|returns|returned|const|let|var|float|double|vers|from version",
)];

/// Words for number and code. With a word for a thing next to them they name its number, as "meter number" and "numéro de compteur" do.
pub(in crate::filters::redact) const NUMBER_WORDS: &str = "number|numbers|no|num|nr|n|nº|n°|№|numéro|numero|número|núm|nro|nummer|nummern|numer|numeru|číslo|čísla|cislo|cisla|č|szám|száma|număr|numărul|numar|numarul|numri|\
    nr-ul|broj|broja|br|številka|stevilka|št|номер|номера|номером|номерът|број|бр|αριθμός|αριθμό|αριθ|αρ|numara|numarası|numarasi|numaram|numaramız|nömrəm|numeroni|нөмірі|номери|дугаар|raqami|namba|nambari|nömrə|nömrəsi|no'su|nosu|numeris|numurs|number|رقم|الرقم|شماره|نمبر|\
    מספר|מס|संख्या|नंबर|नम्बर|क्रमांक|নম্বর|নাম্বার|எண்|నంబర్|ಸಂಖ್ಯೆ|നമ്പർ|નંબર|ਨੰਬਰ|số|nomor|nombor|หมายเลข|เลข|번호|ნომერი|համար|ቁጥር|нөмір|дугаар|raqam|kod|kód|code|código|codice|codigo|cod|koodi|κωδικός|κωδ|код|کد|كود|קוד|mã|kode|id";
