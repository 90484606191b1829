//! Words after a number that say that it counts something.

/// Codes of currencies (ISO 4217) and units that are no words of a sentence: a number of any form before them is an amount.
pub(in crate::filters::redact) const CODES: &str = "usd|eur|gbp|idr|inr|krw|vnd|brl|mxn|zar|sek|nok|dkk|pln|czk|huf|thb|myr|sgd|hkd|twd|aud|cad|nzd|chf|aed|uah|jpy|cny|\
    clp|pkr|egp|qar|kwd|ngn|kes|bgn|isk|kzt|lkr|bdt|rmb|btc|eth|xof|xaf|fcfa|dzd|tnd|omr|bhd|ghs|ugx|tzs|etb|mga|mwk|zmw|mzn|aoa|bwp|szl|lsl|lyd|sdg|gnf|rwf|bif|cdf|kmf|djf|gmd|lrd|cve|mru|htg|jmd|ttd|bbd|bzd|gtq|hnl|pab|dop|uyu|pyg|syp|iqd|irr|lbp|yer|\
    afn|tjs|tmt|amd|byn|mdl|lak|khr|mvr|btn|bnd|fjd|pgk|vuv|wst|xpf|usdt|usdc|rsd|mkd|azn|uzs|kgs|mnt|npr|\
    kč|zł|kr|ден|дин|лв|тг|сум|сўм|тенге|₸|euros?|eur[oó]|dollars?|rupees?|rupiah|rub(?:le|el)s?|rublos|francs?|franken|kron(?:a|e|or|er|y)|korun[ya]?|yuan|\
    baht|liras?|reais|đồng|dirhams?|ri?yals?|shekels?|złotych|forint|pesos?|yen|kwh|mwh|ghz|mhz|khz|kb|mb|gb|tb|kib|mib|gib|kbps|mbps";

/// Currencies whose codes are words as well: "415-555-2671 try after five".
pub(in crate::filters::redact) const CAPITALS: &str =
    "ILS|TRY|PHP|COP|RON|TL|RUB|MKD|CFA|F CFA|LEI|RM|MAD|SAR|GEL|BAM|JOD|Hz";

/// Words that count only a number that is bare or has groups of thousands: "1 234 567 lei", but "0712 345 678 lei nu merge".
pub(in crate::filters::redact) const COUNTED_THINGS: &str = "won|ft|din|bytes?|bits?|ms|ns|μs|µs|sec|secs|seconds?|nanoseconds?|milliseconds?|microseconds?|minutes?|hours?|days?|weeks|months|years|rows?|columns|cols|\
    steps?|points?|users?|items?|pieces?|people|persons?|km|m|cm|mm|kg|mg|ml|times|tokens?|records?|entries|lines?|requests?|hits|views|lei|rub|pounds?|\
    stück|stücke|pcs|words?|pages?|inhabitants|hz|iterations?|cycles|files?|messages?|characters|chars|visitors|visits|downloads|uploads|votes|stars|light[ -]years|atoms|molecules|\
    base[ -]pairs|samples|transactions|cells|miles|met(?:er|re)s|kilomet(?:er|re)s|feet|tonnes|tons|barrels|shares|copies|units|inodes|keys|ops|operations|calls per|events|\
    instructions|packets|blocks|nodes|edges|objects|parameters|neurons|subscribers|followers|likes|clicks|impressions|pixels|documents|images|results|errors|warnings|\
    tests|commits|seats|passengers|employees|residents|citizens|households|customers|orders|tickets|books|songs|galaxies|planets|years ago|in total|remaining|left over|mod|xor|\
    einwohner|menschen|leute|personen|tage|stunden|minuten|sekunden|jahre|schritte|punkte|zeilen|dateien|nutzer|kilometer|tonnen|aktien|stimmen|exemplare|besucher|\
    habitants|personnes|jours|heures|secondes|ans|années|lignes|fichiers|octets|voix|exemplaires|visiteurs|mètres|tonnes|actions|\
    habitantes|personas|días|horas|segundos|años|líneas|archivos|pasos|votos|ejemplares|visitantes|metros|toneladas|acciones|unidades|veces|pessoas|dias|anos|linhas|passos|\
    abitanti|persone|giorni|ore|secondi|anni|righe|passi|voti|copie|visitatori|metri|tonnellate|azioni|volte|\
    inwoners|mensen|dagen|uur|seconden|jaar|regels|stappen|stemmen|keer|invånare|människor|dagar|timmar|sekunder|steg|röster|gånger|innbyggere|dager|timer|indbyggere|\
    asukasta|päivää|tuntia|sekuntia|mieszkańców|osób|dni|godzin|sekund|lat|kroków|głosów|razy|sztuk|obyvatel|lidí|dnů|hodin|kroků|hlasů|kusů|lakos|ember|nap|óra|másodperc|lépés|darab|\
    locuitori|persoane|zile|ore|pași|жителей|человек|дней|часов|секунд|лет|строк|шагов|голосов|раз|штук|шт|байт|метров|тонн|жителів|осіб|днів|годин|кроків|разів|жители|души|пользовател[ьяей]*|користувач[ііів]*|запис[ьиейів]*|строк[аи]?|рядк[иів]*|файл[аы]?|символ[аы]?|байта|бита|метра|шага|раза|голоса|года|часа|дня|минуты|секунды|человека|жителя|штуки|товара|единицы|сообщения|запроса|просмотра|\
    κάτοικοι|άτομα|ημέρες|ώρες|βήματα|kişi|nüfus|gün|saat|saniye|adım|adet|kez|orang|penduduk|hari|jam|langkah|kali|người|dân|ngày|giờ|bước|lần|نسمة|شخص|يوم|ساعة|نفر|روز|תושבים|אנשים|ימים|צעדים|लोग|लोगों|दिन|कदम|คน|วัน|ก้าว|\
    octets?|bps|kbit|mbit|gbit|rpm|fps|dpi|ppm|ppb|psi|px|µg|μg|µm|μm|cm²|ml|mol|joules?|watts?|volts?|amperes?|amps|ohms?|pascals?|newtons?|kelvins?|hertz|litres?|liters?|gallons?|ounces?|acres?|hectares?|hectare[ns]?|sqm|sq ?ft|sq ?m|\
    square (?:feet|met(?:er|re)s|kilomet(?:er|re)s|miles)|cubic (?:feet|met(?:er|re)s)|kcal|calories|degrees|joule|vehicles|cars|houses|homes|births|deaths|cases|patients|players|members|accounts|devices|installs|installations|commands|queries|queued|pending|\
    insertions|deletions|edits|articles|posts|comments|reviews|ratings|streams|listeners|streamers|viewers|fans|miners|hashes|coins|satoshis?|gwei|sats|slots|frames|vertices|triangles|polygons|voxels|particles|photons|electrons|genes|genomes|cores|threads|\
    objekte|einträge|datensätze|zeichen|wörter|seiten|stk|kpl|anfragen|aufrufe|klicks|treffer|ereignisse|nachrichten|pakete|knoten|bildpunkte|liter|meter|gramm|quadratmeter|kubikmeter|hektar|fahrzeuge|haushalte|wähler|mitglieder|teilnehmer|bestellungen|spieler|fälle|bäume|\
    enregistrements|caractères|mots|requêtes|vues|clics|événements|messages|paquets|nœuds|litres|grammes|pièces|unités|véhicules|foyers|électeurs|membres|hectares|entrées|exécutions|itérations|utilisateurs|abonnés|téléchargements|joueurs|cas|arbres|\
    registros|filas|columnas|caracteres|palabras|páginas|archivos|ficheros|peticiones|solicitudes|visitas|clics|eventos|mensajes|paquetes|nodos|litros|gramos|kilos|piezas|uds|unid|hectáreas|viviendas|hogares|electores|miembros|entradas|iteraciones|usuarios|suscriptores|seguidores|descargas|jugadores|casos|árboles|\
    registos|fileiras|caracteres|palavras|arquivos|ficheiros|requisições|pedidos|cliques|mensagens|pacotes|nós|gramas|peças|hectares|domicílios|eleitores|membros|iterações|usuários|utilizadores|assinantes|inscritos|downloads|jogadores|segundos|minutos|meses|\
    record|caratteri|parole|pagine|richieste|visite|eventi|messaggi|pacchetti|nodi|litri|grammi|pezzi|pz|unità|ettari|famiglie|elettori|membri|iterazioni|utenti|iscritti|seguaci|download|giocatori|casi|alberi|minuti|mesi|byte|bit|\
    rijen|records|tekens|woorden|pagina's|bestanden|verzoeken|weergaven|bezoekers|berichten|stuks|eenheden|gebruikers|abonnees|volgers|spelers|gevallen|bomen|minuten|maanden|weken|liter|gram|\
    rader|tecken|sidor|filer|förfrågningar|visningar|besökare|meddelanden|stycken|enheter|användare|prenumeranter|följare|spelare|träd|minuter|månader|veckor|år|oppføringer|tegn|sider|forespørsler|visninger|meldinger|stykk|enheter|brukere|følgere|\
    rækker|anmodninger|beskeder|stykker|enheder|brugere|måneder|uger|minutter|riviä|merkkiä|sanaa|sivua|tiedostoa|pyyntöä|kertaa|kappaletta|yksikköä|käyttäjää|tilaajaa|tavua|bittiä|minuuttia|kuukautta|vuotta|viikkoa|ääntä|\
    wierszy|rekordów|znaków|słów|stron|plików|żądań|odsłon|wyświetleń|wiadomości|pakietów|litrów|gramów|szt|jednostek|użytkowników|obserwujących|graczy|przypadków|bajtów|bitów|minut|miesięcy|tygodni|\
    řádků|záznamů|znaků|slov|stran|souborů|požadavků|zobrazení|zpráv|jednotek|uživatelů|hráčů|případů|bajtů|bitů|minut|měsíců|týdnů|riadkov|záznamov|znakov|strán|súborov|požiadaviek|správ|používateľov|bajtov|bitov|minút|mesiacov|rokov|obyvateľov|\
    sor|rekord|karakter|szó|oldal|fájl|kérés|üzenet|egység|felhasználó|bájt|perc|hónap|hét|fő|liter|rânduri|înregistrări|caractere|cuvinte|fișiere|cereri|vizualizări|mesaje|buc|bucăți|utilizatori|octeți|biți|minute|luni|săptămâni|\
    redaka|redova|zapisa|znakova|riječi|datoteka|zahtjeva|pregleda|poruka|kom|komada|korisnika|bajtova|minuta|mjeseci|tjedana|godina|stanovnika|vrstic|zapisov|znakov|besed|strani|datotek|zahtev|kosov|uporabnikov|bajtov|\
    записей|символов|слов|страниц|файлов|запросов|просмотров|кликов|событий|сообщений|пакетов|узлов|литров|граммов|единиц|пользователей|подписчиков|игроков|случаев|деревьев|бит|битов|байтов|минут|месяцев|недель|гц|кгц|мгц|ггц|па|кпа|вт|квт|мвт|квтч|квт[·*]?ч|дж|кдж|кг|мг|км|мм|см|мл|га|кбайт|мбайт|гбайт|кб|мб|гб|тб|\
    рядків|записів|символів|слів|сторінок|файлів|запитів|переглядів|повідомлень|одиниць|користувачів|підписників|байтів|бітів|хвилин|місяців|тижнів|гривень|реда|записа|символа|думи|страници|файла|заявки|съобщения|броя|потребители|байта|бита|минути|месеца|години|дни|часа|\
    γραμμές|εγγραφές|χαρακτήρες|λέξεις|σελίδες|αρχεία|αιτήματα|προβολές|μηνύματα|τεμάχια|τεμ|μονάδες|χρήστες|λεπτά|δευτερόλεπτα|μήνες|χρόνια|κατοίκους|satır|kayıt|karakter|kelime|sayfa|dosya|istek|görüntüleme|mesaj|parça|birim|kullanıcı|takipçi|bayt|dakika|yıl|hafta|sətir|ədəd|istifadəçi|\
    baris|catatan|karakter|kata|halaman|berkas|permintaan|tayangan|pesan|buah|pengguna|pengikut|byte|menit|detik|bulan|tahun|minggu|jiwa|biji|hàng|bản ghi|ký tự|trang|tệp|yêu cầu|lượt|lượt xem|tin nhắn|cái|chiếc|người dùng|phút|giây|tháng|năm|tuần|\
    safu|rekodi|herufi|maneno|kurasa|faili|maombi|ujumbe|vipande|watumiaji|watu|siku|saa|dakika|miezi|miaka|بايت|بت|سطر|صف|سجل|سجلا|حرف|كلمة|صفحة|ملف|رسالة|قطعة|وحدة|مستخدم|مشترك|متابع|ثانية|دقيقة|شهر|سنة|عام|كيلومتر|متر|لتر|غرام|كغ|كم|واط|هرتز|باسكال|جول|\
    بایت|بیت|ردیف|رکورد|کلمه|صفحه|فایل|پیام|عدد|واحد|کاربر|ثانیه|دقیقه|ساعت|ماه|سال|کیلومتر|متر|لیتر|گرم|کیلوگرم|وات|لوگ|افراد|دن|سال|بائٹ|گھنٹے|בייט|בתים|ביט|שורות|רשומות|תווים|מילים|דפים|קבצים|בקשות|הודעות|יחידות|משתמשים|שניות|דקות|שעות|חודשים|שנים|נפש|איש|ק\"מ|ק״מ|מטר|\
    बाइट|बिट|पंक्तियाँ|पंक्तियां|रिकॉर्ड|अक्षर|शब्द|पृष्ठ|फाइलें|फ़ाइलें|अनुरोध|संदेश|इकाई|नग|यूज़र|उपयोगकर्ता|मिनट|सेकंड|घंटे|महीने|साल|वर्ष|किमी|किलोमीटर|मीटर|लीटर|ग्राम|वाट|বাইট|সারি|লাইন|জন|টি|মিনিট|সেকেন্ড|ঘণ্টা|মাস|বছর|கிமீ|பேர்|நாட்கள்|ไบต์|บิต|แถว|รายการ|ตัวอักษร|คำ|หน้า|ไฟล์|ข้อความ|ชิ้น|หน่วย|ครั้ง|นาที|วินาที|ชั่วโมง|เดือน|ปี";

/// Signs and abbreviations of units, in the letters in which they are written.
pub(in crate::filters::redact) const UNITS: &str = "[kKMGTPE]i?B(?:it)?(?:/s|ps)?|[kMGT]?bit/s|[kMGT]?b/s|B/s|[kKMGTP]bps|[µμmkMGT]?Hz|[hkMGm]?Pa|[mkMGT]W|[kMGTm]?Wh|[kM]?VA[rh]?|[mkMµμ]V|[mµμk]A|m?Ah|[kMGm]?eV|[kMG]J|[kM]N|N[·⋅]?m|[kM]?Ω|mbar|hPa|dBm?|°[CFK]?|℃|℉|km/h|m/s|mph|\
    [kcmdµμn]?m[²³23]|ft[²³23]|in[²³]|yd[²³]|mi²|[kmµμn]?mol|[kmµμn]g|[mcdhµμ][lL]|[kKMG]cal|[kMG]?[Bb]d|Mpc|kpc|Gyr|Myr|kyr|lx|lm|IU|kgf|Bq|Sv|Gy|Nm|rpm|RPM|req/s|ops/s|rows/s|nm|µm|μm|db|KiB|MiB|GiB|TiB|PiB|PB|EB|Stk|Stck|Sek|Std|Mrd|mln|mld|млн|млрд|тыс";

/// Units of one or two letters that are words or names as well: they count at the end of a clause.
pub(in crate::filters::redact) const LAST_UNITS: &str = "ha|st|ks|oz|bar|cal|mi|ly|pc|in|yd|[AJKLNTVWFCRSmglthds]|gal|lb|lbs|mol|atm|au|AU|un|ud|pt|ea|EA|pz|von|qm|cbm|ccm|rem|erg|eq|Å|Ω|вт|в|а|г|л|т|м|с|ч";

/// What a bare number counts in scripts without spaces.
pub(in crate::filters::redact) const DENSE_COUNTED: &str = "[个個人次件株条條张張枚頁页]|位元組|位元组|字节|字節|比特|行目|名[^字称稱]|(?:行|台|回|名|位|本|份|匹|冊|册|部|点|點|分|秒|年|天|日)(?:$|[\\s。、，,.;；)）])|分钟|小时|小時|平方|立方|公里|千米|公斤|千克|吨|米|升|赫兹|赫茲|帕|焦耳|瓦|千瓦|\
    バイト|ビット|レコード|ヘルツ|パスカル|ワット|キロ|メートル|グラム|リットル|トン|時間|秒間|分間|か月|ヶ月|年間|日間|バイ|文字|件数|\
    바이트|비트|헤르츠|와트|미터|킬로|그램|리터|개|건|명|행|줄|대(?:$|[\\s.,])|회(?:$|[\\s.,])|분(?:$|[\\s.,])|초|시간|일(?:$|[\\s.,])|년|개월|원|ไบต์";

/// Extensions of the names of files.
pub(in crate::filters::redact) const EXTENSIONS: &str = "pdf|png|jpe?g|gif|svg|webp|heic|heif|avif|tiff?|bmp|raw|cr2|nef|arw|dng|psd|eps|dwg|dxf|stl|txt|log|csv|tsv|json[l5]?|ndjson|xml|ya?ml|toml|ini|cfg|conf|x?html?|css|md|docx?|xls[xm]?|pptx?|od[tsp]|rtf|epub|mobi|zip|gz|tgz|xz|txz|bz2|zst|tar|7z|rar|iso|dmg|img|\
    exe|msi|apk|ipa|deb|rpm|jar|war|dll|wasm|mp[34]|m4[av]|m3u8?|mpd|mov|avi|mkv|webm|wav|ogg|oga|opus|flac|aac|amr|3gp|bak|old|orig|tmp|dump|dmp|db|sqlite3?|eml|msg|ics|vcf|pem|crt|cer|p12|pfx|parquet|avro|orc|sql|pcap|gpx|kml|geojson|ttf|woff2?|ipynb|php|aspx?|jsp|cgi|py|rs|tsx?|jsx?|cpp|hpp|java|kt|rb|lua|swp|pid|lock|map|torrent|srt|vtt|dat|bin|dcm|las|fits?|nc|hdf5|h5|npy|npz|pkl|pt|onnx|ckpt|gguf|safetensors";
