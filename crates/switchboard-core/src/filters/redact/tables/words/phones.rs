//! Words for phones, and words for the persons and places that phones belong to.

/// Words before a phone number: by language or script, divided by `|`. `stem*` is the beginning of a word, `*end` its end,
/// and `*inside*` stands anywhere in it.
pub(in crate::filters::redact) const PHONES: &[(&str, &str)] = &[
    (
        "compounds and names of services",
        "*puhelin*|*puhelim*|fax*|mobiel*|mobiil*|*fastnet*|tlfnr|mobnr|tlf-nr|tlf.nr|farsím*|heimasím*|hívószám*|ponsel*|seluler*|no wa|nohp|số máy|واتس*|جوالي|*פלאפון*|סלולרי*|\
         व्हाट्सएप*|व्हाट्सऐप*|वॉट्सऐप*|दूरभाष|হোয়াটসঅ্যাপ*|viberu|viberom|skype",
    ),
    (
        "many",
        "msisdn|whats app|whatsap*|wasap*|watsap*|guasap*|wpp|wsp|telephon*|telefon*|téléphon*|teléfon*|telefón*|telefoon*|phone*|mobil*|móvil*|cellphone*|whatsapp*|tel|tél|tels|gsm|cel|cell|fax|hp|\
         sms|call|calls|calling|dial|text|ph|wa|viber|hotline*|*telefon*|*telepon*|*telefax*|*telefoon*|*phone*|*whatsapp*",
    ),
    (
        "en",
        "callback*|call back|call-back*|txt|direct line|phone line|ligne directe|contact number|contact numbers|contact no|reach me at|reach me on|toll free|toll-free|freephone|landline*|helpline*",
    ),
    (
        "de",
        "rückruf*|*anruf*|*zurückrufen|handy*|anruf*|rufen|rufnum*|notruf*|durchwahl*|kontaktnum*|faxnum*|natel*|telnum*|telnr|gsmnum*|gsmnr|festnetz*|privatnum*|büronum*|erreichbar unter|zu erreichen unter|*handy*|*rufnum*|*notruf*|*notfallnum*|*hotline*|*kontaktnum*|*festnetz*|*durchwahl*|*servicenum*|\
         *wählnum*|*büronum*|*privatnum*|*heimnum*",
    ),
    (
        "nl",
        "terugbel*|selfoon*|foonnom*|opbel*|bel|bellen|thuisnum*|06-nummer|*werknum*",
    ),
    (
        "nordic",
        "tlf|ring|ringe|ringen|ringer|ringa|hring*|återuppring*|nås på|træffes på|treffes på|hemnum*|arbetsnum*|hjemmenum*|nødnum*|nödnum*|puhelin*|puhelim*|puh|soita*|\
         sími*|síman*|*hemnum*|*arbetsnum*|*hjemmenum*",
    ),
    ("fr", "rappel*|appel*|portable|contactez*|joignable"),
    (
        "es",
        "movil*|marcar|marque|márcame|llám*|llame*|llama*|celular*|cellular*|fono|telf|tfno|tlfno",
    ),
    (
        "pt",
        "falar com|fala com|telemóvel*|telemovel*|ligue*|ligar",
    ),
    ("it", "richiam*|chiama*|cellulare*|cell"),
    ("ro", "mobilul|sună*|sunați*"),
    ("pl", "*dzwon*|*dzwoń*|dzwoni*|zadzwo*"),
    ("cs, sk", "volejte|volajte|zavolej*|mobil"),
    ("sl, hr, sr", "pokličite|nazovi*"),
    (
        "baltic",
        "tālr|tālrun*|tālruņ*|*skambin*|piezvan*|skambin*|zvan*|helista*",
    ),
    ("hu", "hívj*|hívjon|telefonszám*|*telefonszám*|mobilszám*"),
    ("tr", "cep|cebim|telefonum|gsm"),
    (
        "id, ms",
        "telepon*|telpon*|hubungi|telp|tlp|no hp|no. hp|no telp",
    ),
    ("vi", "đt|sđt|điện thoại|gọi|dđ|di động|hotline"),
    ("sw", "nipigie|tawag*|tumawag*|simu"),
    (
        "ru, uk, bg",
        "*звон*|*дзвон*|*телефон*|қоңырау*|горячая линия|горячей линии|гаряча лінія|гарячої лінії|телефон*|звон*|дзвон*|мобильн*|мобільн*|тел|моб|сотовый|контакт*",
    ),
    ("el", "τηλ*|κινητ*|κιν|σταθερό|καλέστε|επικοινων*"),
    (
        "hi and others",
        "*फोन*|*फ़ोन*|*फ़ोन*|*मोबाइल*|*मोबाईल*|*मोबायल*|मो.|मो. नं.|मो.नं.|*लैंडलाइन*|लैंड लाइन|फैक्स|फ़ैक्स|कॉल*|सम्पर्क नंबर|संपर्क नंबर|सम्पर्क नम्बर|संपर्क सूत्र|सम्पर्क सूत्र|व्हाट्सअप|व्हाटसएप|वाट्सएप|वाट्सऐप|व्हॉट्सअॅप|घुमाएं|\
         *টেলিফোন*|টেলিফোনে|মোবাইলে|ফোনে|*ফোন|কল|হোয়াটসঅ্যাপ|হোয়াটসঅ্যাপ|*தொலைபேசி*|*ஃபோன்*|*போன்*|வாட்ஸ்அப்|வாட்ஸ்ஆப்|தொ.பே.|*ఫోన్*|*మొబైల్*|*టెలిఫోన్*|వాట్సాప్|*ಫೋನ್*|*ಮೊಬೈಲ್*|ವಾಟ್ಸಾಪ್|*ഫോൺ*|*മൊബൈൽ*|ടെലിഫോൺ*|വാട്സ്ആപ്പ്|വാട്‌സ്ആപ്പ്|*ફોન*|*મોબાઇલ*|*મોબાઈલ*|વોટ્સએપ|*ਫ਼ੋਨ*|*ਫੋਨ*|*ਮੋਬਾਇਲ*|ਵਟਸਐਪ|*फोनवर|फोन*|फ़ोन*|फ़ोन*|मोबाइल*|कॉल|ফোন*|মোবাইল*|ফোন|தொலைபேசி*|போன்|மொபைல்|ఫోన్|మొబైల్|ಫೋನ್|ಮೊಬೈಲ್|ഫോൺ|മൊബൈൽ|ફોન|મોબાઇલ|ਫ਼ੋਨ|ਫੋਨ",
    ),
    (
        "ar, fa, ur",
        "*هاتف*|*هواتف*|*جوال*|*جوّال*|*موبايل*|*موبيل*|*موبايیل*|*تلفون*|*تليفون*|*تلیفون*|*تيليفون*|*تلفن*|*تليفن*|*محمول*|*نقال*|*نقّال*|*خلوي*|*خليوي*|*سيلولير*|*بيجر*|*فاكس*|*واتس*|*وتساب*|*وتس اب*|\
         اتصل*|*اتصال*|اتصلوا|كلمني|كلموني|نمرة|نمرتي|*موبایل*|*مبایل*|*موبائل*|*مبائل*|همراه*|*تماس*|گوشی*|فون*|*فونک*|فکس*|*نمابر*|*واتساپ*|*واتس‌اپ*|واٹس ایپ*|واٹساپ*|وٹس ایپ*|ٹیلی فون*|ٹیلیفون*|سیل نمبر|کال|فون نمبر|لینڈ لائن|خط ثابت|تلیگرام",
    ),
    (
        "he",
        "*התקשר*|*תלפון*|טל|טל'|*טלפון*|*טלפונ*|*נייד*|*פקס|*הפקס*|*ווטסאפ*|*וואטסאפ*|*ווצאפ*|*וואצאפ*|*ווטסאפ*|*סלולר*|*סלולארי*|*פלאפונ*|קווי|חייג*|תחייג*|תתקשר*|*צלצל*|תסמס*|סמס|אסאמאס",
    ),
    (
        "ka, hy",
        "დამირეკ*|დარეკ*|զանգահար*|ტელეფონ*|ტელ|მობილ*|հեռախոս*|հեռ|բջջ*",
    ),
    (
        "zh",
        "来电|回电|電聯|电话|手机|電話|手機|拨打|撥打|致电|致電|打给|请打|联系方式|聯繫方式|联系人|聯絡人|联系|聯絡|座机|座機|热线|熱線|传真|傳真|市话|微信",
    ),
    (
        "ja",
        "携帯|連絡先|自宅番号|代表番号|緊急番号|直通番号|内線番号|内線|ケータイ|フリーダイヤル|スマホ|ファックス|ファクス|ファクシミリ|テレホン|テレフォン|モバイル|携带",
    ),
    (
        "ko",
        "전화|대표번호|팩스|비상연락|비상번호|긴급번호|자택번호|사무실번호|집번호|회사번호|직장번호|휴대폰|휴대|핸드폰|연락처|연락|모바일",
    ),
    (
        "other languages, Latin",
        "taleefan*|waya|wayata|wayar|fóònù|foonu|ekwentị|ucingo|iselula|umnxeba|finday|waea|fón|guthán|ffôn*|symudol|fòn|mugikor*|telèfon*|mòbil*|móbil|telefown|mowbajl|fartelefon*|selpon|selfon*|telepono",
    ),
    (
        "other languages, other scripts",
        "ұялы|ስልክ*|ሞባይል|ተሌፎን|محمول*|المحمول|نقال|النقال|خلوي|الخلوي|موبائل*|مبایل|ټلیفون|مۆبایل*|تەلەفۆن*|मोबाईल*|भ्रमणध्वनी|दूरध्वनी|দূরভাষ|মুঠোফোন*|ટેલિફોન*|ਮੋਬਾਈਲ*|ਟੈਲੀਫੋਨ*|கைபேசி*|அலைபேசி*|செல்போன்|చరవాణి|సెల్|\
         ದೂರವಾಣಿ*|ഫോണ്*|දුරකථන*|ජංගම|ទូរសព្ទ",
    ),
    ("th, lo, km, my", "โทร|เบอร์|มือถือ|แฟกซ์|ໂທ|ເບີ|ទូរស័ព្ទ|လေးဖုန်း|ဖုန်း"),
];

/// Words before a phone number that mean one only right before it.
pub(in crate::filters::redact) const NEXT_PHONES: &[(&str, &str)] = &[
    (
        "latin",
        "contact|contacts|contacto|contato|contatto|kontakt|kontakta|kapcsolat|iletişim|signal|telegram|facetime|imessage|contact card|business card|visiting card|visitenkarte|carte de visite|tarjeta de visita|cp no|cp number|cp num|hub|whats|at number|on number|pager|fixe|fixo|zap|fone|kom|ara|arayın|arayin|arayabilirsiniz|ulaşın|ulaşabilirsiniz|ulaşabileceğiniz numara|ruf|mob",
    ),
    (
        "services that one calls",
        "customer service|customer services|customer support|customer care|caller id|caller|courier|sim card|sim|kundenservice|kundendienst|kundenbetreuung|kundenhotline|paketdienst|lieferdienst|\
         pflegedienst|bereitschaftsdienst|sim-karte|service client|service clients|relation client|relations clients|carte sim|atención al cliente|servicio al cliente|serviço ao cliente|apoio ao cliente|\
         atendimento ao cliente|sac|servizio clienti|assistenza clienti|klantenservice|klantendienst|kundtjänst|kundservice|kundeservice|kundesenter|kundecenter|asiakaspalvelu*|þjónustuver|\
         ügyfélszolgálat*|serviciu clienți|serviciul clienți|relații clienți|obsługa klienta|biuro obsługi|zákaznická linka|zákaznický servis|zákaznícka linka|zákaznícky servis|klientský servis|služba za korisnike|\
         korisnička služba|klientu serviss|klientų aptarnavimas|klienditugi|müşteri hizmetleri|müşteri temsilcisi|layanan pelanggan|khidmat pelanggan|chăm sóc khách hàng|cskh|huduma kwa wateja",
    ),
    (
        "services in other scripts",
        "служба поддержки|служба підтримки|поддержк*|клиентская служба|связи|зв'язку|вотсап*|ватсап*|вайбер*|телеграм*|обслужване на клиенти|εξυπηρέτηση πελατών|خدمة العملاء|خدمات العملاء|خدمات مشتریان|پشتیبانی|\
         שירות לקוחות|ग्राहक सेवा|গ্রাহক সেবা|ลูกค้าสัมพันธ์|บริการลูกค้า|客服|客户服务|客戶服務|快递员|快遞員|客户经理|お客様サポート|お客様センター|お客様相談|カスタマー|고객센터|고객님|고객상담|택배기사|기사님",
    ),
    (
        "my number",
        "my number|meine nummer|mijn nummer|mitt nummer|mit nummer|numeroni|mon numéro|mi número|mi numero|\
         meu número|meu numero|mio numero|numărul meu|mój numer|moj numer|moje číslo|moj broj|moja številka|\
         mano numeris|mans numurs|minu number|a számom|numaram|nomor saya|nombor saya|số của tôi|namba yangu|\
         numri im|mənim nömrəm|mening raqamim|my nommer|мой номер|мій номер|моят номер|мојот број|мој број|менің нөмірім|менин номерим|миний дугаар|ο αριθμός μου|मेरा नंबर|माझा नंबर|\
         আমার নম্বর|আমার নাম্বার|મારો નંબર|ਮੇਰਾ ਨੰਬਰ|என் எண்|எனது எண்|నా నంబర్|నా నెంబర్|ನನ್ನ ನಂಬರ್|ನನ್ನ ಸಂಖ್ಯೆ|എന്റെ നമ്പർ|میرا نمبر|رقمي|شماره من|המספר שלי",
    ),
    (
        "somebody's number",
        "pod nr|pod numer|pod numerem|na numer|na číslo|na čísle|na broj|unter der nummer|au numéro|al número|al numero|no número|ao número|pe numărul|la numărul|på nummer|op nummer|ke nomor|по номеру|на номер|за номером|στον αριθμό|\
         على الرقم|به شماره|numarasına|numaralı|numeroon|numero verde|numéro vert|número gratuito|registered number|new number|old number|his number|her number|their number|work number|home number|office number|neue nummer|alte nummer|nouveau numéro|ancien numéro|nuevo número|número nuevo|novo número|nuovo numero|\
         nieuwe nummer|nytt nummer|nyt nummer|nowy numer|nové číslo|nomor baru|новый номер|новий номер|mera number|mera no|mera mobile|hamara number|apna number|bkash|nagad|বিকাশ",
    ),
    (
        "verbs of reaching somebody, Latin",
        "reach me|reach us|contact me|message me|ping me|get hold of me|get me|erreichen|erreichbar|kontaktieren|melden|bereiken|bereikbaar|nå mig|nå meg|nås|nåes|kontakta mig|kontakt meg|kontakt mig|træffes|treffes|fanges|\
         tavoittaa|tavoitettavissa|joindre|contacter|recontacter|écrire|contácteme|contáctenme|contáctame|contactarme|escríbeme|escríbanme|escríbame|escribirme|escribime|escribanme|localizarme|ubicarme|comunicarse|comuníquese|\
         comuníquense|contacte-me|contactem-me|contactar-me|contatar|escreva|me chama|me chamem|falar comigo|contattarmi|contattatemi|contattami|scrivetemi|scrivimi|scrivermi|reperibile|contactați-mă|scrieți-mi|găsiți|găsi|kontaktować|\
         skontaktować|pisać|ozvěte se|ozvi se|ozvite sa|kontaktujte|zastižení|spojit se|elérhető|elérnek|elérhetőség*|keressenek|javite se|javite mi se|dosegljiv*|kontaktirajte|dostupan|dobijete|kontaktn*|kontaktow*|kontaktes|kontaktas|contattare|kontak|liên hệ|lien he|zalo",
    ),
    (
        "verbs of reaching somebody, other scripts",
        "свяжитесь|связаться|пишите|напишите|наберите|набирайте|зв'яжіться|пишіть|напишіть|наберіть|свържете се|пишете|потърсете|επικοινωνήστε|βρείτε με|πάρτε με|στείλτε μου|تواصل*|كلموني|راسل*|زنگ|צרו קשר|להשיג אותי|לחזור אליי|חייגו|\
         தொடர்பு*|വിളിക്ക*|ติดต่อ|打俾我|折り返し",
    ),
    (
        "others",
        "вацап*|уотсап*|вотсапп*|φαξ|βάιμπερ|σταθερ*|контакт|контакты|επικοινωνία|رابطہ|утас*|संपर्क|যোগাযোগ",
    ),
];

/// Words that hold a word for phone and mean something else: real estate and cars.
pub(in crate::filters::redact) const NO_PHONES: [&str; 2] = ["immobil", "automobil"];

/// Words that say whose or which number it is, next to a word for number: "my number", "numéro de ma mère". They say nothing
/// about what it is.
pub(in crate::filters::redact) const OWNERS: &[(&str, &str)] = &[
    (
        "Portuguese before \"no\", which is \"at the\"",
        "liga|ligar|ligue|ligou|chama|chame|chamar|fala|fale|falar|mensagem|manda|mande|mandar|encontra|estou|atendo|atende|retorna|retorne|retornar|responde|anotado|disponível|entre|aviso|avisa|avise",
    ),
    (
        "kinds of phone numbers",
        "registered|given|existing|previous|former|active|reachable|good|valid|unknown|blocked|spam|strange|dialled|dialed|calling|ported|linked|virtual|prepaid|postpaid|roaming|listed|published|usable|\
         temp|spare|whichever|bkash|mpesa|paytm|missed|available|safe|geschäfts*|firmen*|dienst*|praxis*|zentral*|direkt*|haupt*|sammel*|zweit*|arbeits*|arbeids*|kontor*|fastnet*|vakt*|växel*|\
         nood*|kantoor*|info*|palvelu*|päivysty*|vaihde*|vaihteen*|suora*|asiakaspalvelu*|aktif|activo|actif|attivo|ativo|aktiv*|aktywny|aktivní|registrado|enregistré|registrato",
    ),
    (
        "more people",
        "sambo*|kæreste*|kjæreste*|kollega*|svigerm*|moster*|faster*|farmor*|mormor*|vaimon|miehen|siskon|veljen|kaverin|ystävän|apukám|anyukám|nővérem|bátyám|fiam|lányom|barátom|főnök*|\
         ema|isa|mehe|naise|töö|kodu|oğlumun|kızımın|kocamın|karımın|müdür*|ın|un|ün|nin|nın|nun|nün|dükkan*|máy|bàn|định|aktif|bisa|dihubungi|زميلي|رئيسي|여자친구|남자친구|어머니|아버지|언니|오빠|누나|동생|\
         아들|사장님|기사님|담당자|본인|수령인|수취인|받는분|받는사람|보호자|부모님|선생님",
    ),
    (
        "places and people that one calls, Latin",
        "assistance|asistencia|assistenza|assistência|aide|ayuda|ajuda|aiuto|hilfe|hulp|hjälp|hjelp|hjælp|pomoc*|podpor*|podršk*|segítség|destek|yardım|danışma|bantuan|layanan|apoyo|apoio|\
         restaurant*|restaurante*|ristorante|pizzeria|hotel*|hôtel|auberge|albergo|apotheke*|pharmacie|farmacia|farmácia|farmacja|apteki|apotek*|école|escuela|escola|scuola|schule|skola|skole|szkoły|školy|iskola|okul|\
         clinique|clínica|clinica|klinik*|hôpital|hospital*|ospedale|ziekenhuis|sjukhus|sykehus|szpitala|nemocnice|kórház|hastane*|bolnice|médico|medico|médecin|dokter|docteur|doctor*|doktor*|arzt|läkare|lege|lekarza|lékaře|orvos|\
         taxi*|garage|taller|officina|oficina|werkstatt|warsztat*|servis*|serwis*|infolini*|hotline|helpdesk|magasin|boutique|tienda|negozio|loja|laden|winkel|butik*|sklepu|obchod*|bolt|mağaza|toko|voisin*|vecin*|vicino|\
         vizinh*|nachbar*|buur*|granne*|nabo*|sąsiad*|soused*|szomszéd|komşu*|tetangga|réception|recepción|recepção|reception|rezeption|receptie|recepcji|recepce|recepció|resepsiyon*|ambassade|embajada|embaixada|ambasciata|\
         chauffeur|conductor|autista|motorista|fahrer*|sjåfør|kierowcy|řidiče|sofőr|şoför*|sopir|livreur|repartidor|corriere|kurier*|courier|policía|polizia|polícia|polizei|politie|polisen|police|policji|policie|rendőrség|\
         pompiers|bomberos|feuerwehr|abuela|abuelo|grand-mère|oma|opa|nonna|nonno|avó|avô|tante|tía|tío|oncle|zia|zio|tia|tio|schwester|bruder|soeur|syster|bror|søster|siostry|brata|sestry|bratra|kardeş*|kakak|adik|\
         novio|novia|copain|copine|freundin*|freund*|vriend*|kompis*|venn*|kolegi|kamarád*|barát*|arkadaş*|teman|secretaria|secretária|segretaria|secrétaire|sekretär*|assistente|asistente|verde|vert|gratuito|gratuit|bezpłatny|bezplatn*|\
         infoline|central|centralita|centralino|zentrale|centrale|växel|secretaría|portería|conserje|concierge|vigile|propietario|propriétaire|vermieter*|landlord|notaire|abogado|avocat|avvocato|advogado|anwalt*",
    ),
    (
        "places and people that one calls, other scripts",
        "горячей|горячая|линии|гарячої|лінії|поддержки|підтримки|справочной|школы|школи|больницы|лікарні|гостиницы|готеля|отеля|отель*|такси|таксі|аптеки|ресторана|магазина|магазину|клиники|клініки|\
         водителя|водія|курьера|кур'єра|соседа|соседки|сусіда|тёти|дяди|дедушки|секретаря|приёмной|приемной|диспетчера|диспетчерской|полиции|поліції|скорой|администратора|ресепшена|хозяина|хозяйки|мастера|\
         болница*|хотел*|училище*|поддръжка|υποστήριξης|εξυπηρέτησης|ξενοδοχείου|σχολείου|γιατρού|νοσοκομείου|ταξί|φαρμακείου|الدعم|الخدمة|الفندق|المدرسة|المستشفى|الطبيب|الصيدلية|السائق|المطعم|المتجر|والدتي|والدي|ابني|ابنتي|جاري|\
         پشتیبانی|هتل|مدرسه|بیمارستان|دکتر|راننده|رستوران|مغازه|המלון|השירות|בית|המסעדה|הרופא|התמיכה|אשתי|בעלי|होटल|स्कूल|डॉक्टर|अस्पताल|भाई|बहन|दोस्त|সাপোর্ট|হোটেল|ডাক্তার|호텔|병원|학교|식당|약국|상담|고객센터|콜센터|가족|친구",
    ),
    (
        "en",
        "data|result|results|response|body|payload|arguments|args|params|input|output|value|fields|person|my|your|his|her|our|their|its|the|this|that|these|a|an|any|whose|same|new|old|other|another|second|first|third|primary|secondary|main|best|\
         direct|home|house|work|office|business|emergency|contact|alternate|alternative|alt|current|correct|right|wrong|usual|day|daytime|evening|night|\
         desk|reception|switchboard|front|support|help|service|services|care|sales|free|land|local|national|international|foreign|company|\
         school|hotel|clinic|hospital|restaurant|taxi|doctor|gp|driver|courier|store|shop|branch|front desk|mom|mum|dad|mother|father|wife|husband|son|daughter|\
         brother|sister|friend|boss|s|uk|us|american|british|private|personal|public|backup|temporary|call|callback|back|what|which|and|or|at|on|to|in|by|under|\
         with|for|from|of|is|was|use|try|me|us|him|them|ring|save|add|use|here|below|following|one|two|line|both|working|garage|studio|gym|vet|dentist|landlord|agent|manager|neighbour|neighbor|nurse|pharmacy|bank|embassy|parents|child|spouse|partner|assistant|secretary|team|hr|hq|head|salon|barber|cafe|church|university|college|dutch|german|french|spanish|italian",
    ),
    (
        "de",
        "mein*|dein*|ihr*|sein*|unser*|euer|eure*|die|der|das|den|dem|diese*|eine*|neue*|alte*|andere*|zweite*|private*|geschäftlich*|dienstlich*|richtige*|\
         aktuelle*|falsche*|unter|und|oder|von|für|lautet|ist|büro|praxis|zuhause|mutter|vater|frau|mann|tochter|sohn|chef*|privat|arbeit|direkte*|*büro*|*notfall*",
    ),
    (
        "nl",
        "mijn|je|jouw|uw|zijn|haar|ons|onze|hun|het|de|dit|dat|een|nieuw*|oude|ander*|op|en|of|is|werk|thuis|kantoor|privé|moeder|vader|vrouw|man",
    ),
    (
        "nordic",
        "min|mitt|mit|mina|din|ditt|dit|hans|hennes|hendes|vår*|vores|deres|det|den|detta|dette|ett|et|en|nya|nye|nytt|gamla|gamle|på|och|og|er|är|ny|\
         jobb*|hem*|hjemme*|privat*|kontor*|mamma*|pappa*|mor|far|arbete*|oma|uusi|uuden|työ*|koti*|minun|hänen|vanha|äidin|isän",
    ),
    (
        "fr",
        "mon|ma|mes|ton|ta|son|sa|notre|votre|vos|leur|le|la|les|l|ce|cet|cette|un|une|nouveau|nouvel|ancien|autre|bon|perso|personnel|professionnel|pro|privé|\
         au|et|ou|est|pour|direct|fixe|maison|bureau|travail|domicile|hôtel|cabinet|médecin|mère|père|femme|mari|fils|fille|frère|sœur|ami*|chez|me|joindre|\
         urgence*|secours|standard|accueil|service|vert|gratuit|suivant|qui|voici",
    ),
    (
        "es, pt",
        "mi|mis|tu|tus|su|sus|nuestro|nuestra|vuestro|el|la|los|lo|este|esta|ese|esa|un|una|nuevo|viejo|otro|otra|mismo|personal|particular|fijo|directo|\
         casa|oficina|trabajo|hotel|clínica|médico|madre|padre|mamá|papá|esposa|esposo|marido|mujer|hijo|hija|hermano|hermana|amigo|amiga|jefe|emergencia*|\
         urgencias|atención|al|es|y|o|para|con|en|de contacto|contacto|meu|minha|teu|seu|sua|nosso|nossa|o|a|os|as|esse|essa|um|uma|novo|velho|outro|trabalho|\
         escritório|mãe|pai|filho|filha|irmão|irmã|namorad*|emergência|contato|recado|recados|é|e|ou|do trabalho|no|na|pessoal|fixo|direto|gratuito",
    ),
    (
        "it, ro",
        "mio|mia|tuo|tua|suo|sua|nostro|vostro|loro|il|lo|la|un|una|questo|questa|nuovo|vecchio|altro|stesso|personale|fisso|diretto|casa|ufficio|lavoro|\
         albergo|mamma|papà|madre|padre|moglie|marito|figlio|figlia|fratello|sorella|amico|amica|capo|emergenza|emergenze|al|è|e|o|per|verde|centralino|\
         meu|mea|tău|tau|său|lui|ei|nostru|vostru|acest|acesta|nou|vechi|alt|un|este|la|și|sau|pentru|acasă|birou*|serviciu|mamei|tatălui|soției|soțului|fix",
    ),
    (
        "pl, cs, sk, sl, hr, sr",
        "mój|moj|moje|moja|twój|twoje|jego|jej|nasz*|wasz*|ten|to|nowy|stary|inny|drugi|domu|domowy|biura|pracy|służbowy|prywatny|mamy|taty|żony|męża|syna|córki|\
         do|na|pod|i|lub|jest|recepcji|kontaktowy|alarmowy|můj|mé|tvoje|její|jeho|naše|vaše|to|nové|staré|jiné|druhé|domů|práce|kanceláře|mámy|táty|manželky|\
         manžela|soukromé|služební|je|a|nebo|můžete|tvoj|njegov|njen|naš*|vaš*|ovaj|ova|novi|nova|novo|stari|drugi|kući|kuće|kućni|posao|ureda|mame|tate|žene|muža|\
         privatni|službeni|i|ili|nov|doma|službe|služba|mě|mne|tohle|tento|môj",
    ),
    (
        "hu",
        "az|a|én|új|régi|másik|saját|otthoni|irodai|munkahelyi|privát|anyám|apám|férjem|feleségem|ez|ezen|és|vagy",
    ),
    (
        "tr, az",
        "benim|senin|onun|bizim|sizin|bu|şu|yeni|eski|diğer|ikinci|ev|iş|ofis|annemin|babamın|eşimin|anne|baba|şahsi|kişisel|özel|irtibat|acil|ve|veya|doğru|iletişim",
    ),
    (
        "people, in Slavic adjectives: \"mamin broj\"",
        "mamin*|tatin*|majčin*|očev*|otcov*|maminkin*|suprug*|supružn*|muž*|mož*|žen*|manžel*|sinov*|kćerin*|hčerin*|bratov*|sestrin*|babin*|djedov*|dedov*|мамин*|папин*|отцов*|мужнин*|женин*|сынов*|дочерин*|братов*|сестрин*|\
         бабушкин*|дедушкин*|супруг*|съпруг*|майчин*|бащин*|чоловіков*|дружинин*|батьков*",
    ),
    (
        "tl",
        "nanay|tatay|asawa|kapatid|anak|kaibigan|bahay|opisina|trabaho|telepono|amo|ate|kuya|lola|lolo|tita|tito|doktor|ospital|tindahan|kapitbahay|rider|ko|mo|namin|niya|inyo",
    ),
    (
        "sw",
        "mama|baba|mke|mume|nyumbani|ofisi|ofisini|kazini|dada|kaka|rafiki",
    ),
    (
        "id, ms, vi",
        "saya|anda|dia|kami|kita|ini|itu|baru|lama|lain|kantor|rumah|pribadi|kerja|ibu|ayah|istri|suami|ke|di|dan|atau|darurat|kontak|yang|của|tôi|em|anh|chị|mẹ|bố|vợ|chồng|nhà|này|mới|khác|liên|cơ|qua|theo|vào|riêng",
    ),
    (
        "ru, uk, bg, sr",
        "мой|моя|моего|мне|твой|его|её|ее|их|наш*|ваш*|этот|это|тот|новый|старый|другой|второй|домашний|рабочий|личный|прямой|контактный|экстренный|дома|работы|офиса|мамы|\
         папы|жены|мужа|сына|дочери|брата|сестры|друга|подруги|начальника|врача|бабушки|для|по|на|и|или|есть|такой|теперь|вот|мій|твій|його|її|цей|новий|старий|інший|\
         домашній|робочий|особистий|чоловіка|дружини|роботи|офісу|та|або|моят|моя|твоят|този|нов|новият|стар|друг|домашен|служебен|личен|мама|татко|е|мој|твој|овај|нови|стари|кући",
    ),
    (
        "el",
        "μου|σου|του|της|μας|σας|τους|ο|το|τον|αυτός|νέος|νέο|παλιός|άλλος|σπιτιού|γραφείου|δουλειάς|μητέρας|πατέρα|μαμάς|και|ή|είναι|στο",
    ),
    (
        "ar",
        "هو|هذا|الجديد|القديم|الآخر|الشخصي|المنزل|البيت|العمل|المكتب|أمي|أبي|زوجتي|زوجي|أخي|أختي|صديقي|الطوارئ|المباشر|على|أو|التواصل|التالي|لي|عندي",
    ),
    (
        "fa, ur",
        "من|تو|او|ما|شما|این|آن|جدید|قدیمی|دیگر|منزل|خانه|محل|کار|دفتر|مادرم|پدرم|همسرم|اضطراری|مستقیم|است|و|یا|با|میرا|آپ|کا|نیا|گھر",
    ),
    (
        "he",
        "שלי|שלך|שלו|שלה|שלנו|הזה|החדש|הישן|הבית|העבודה|המשרד|אמא|אבא|הוא|חירום|ישיר|או",
    ),
    (
        "hi and others",
        "मेरा|मेरे|आपका|उसका|हमारा|यह|नया|पुराना|दूसरा|घर|ऑफिस|दफ्तर|काम|माँ|मां|पिता|पापा|पत्नी|पति|का|है|पर|এই|আমার|আপনার|তার|নতুন|বাড়ির|অফিসের|মায়ের|என்|என்னுடைய|எனது|புதிய|నా|ನನ್ನ|എന്റെ|મારો|ਮੇਰਾ|माझा|माझे",
    ),
    (
        "ko",
        "제|내|저의|나의|저희|우리|이|그|새|새로운|다른|집|회사|직장|사무실|엄마|아빠|남편|아내|매장|가게|개인|비상|대표|직통",
    ),
];
