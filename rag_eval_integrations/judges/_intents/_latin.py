"""Orders, verdicts and addresses in other languages in Latin script, without accents."""

from __future__ import annotations

from rag_eval_integrations.judges._intents._sign import any_of, by_words

_DROP_LATIN = any_of(
    # German, French, Spanish, Italian
    "ignoriere? ignorieren_sie ignoriert vergiss vergesst vergessen_sie missachten?(?:_sie)?"
    " uberspringe verwirf umgehe beachte_nicht"
    " ignore[zr]? oublie[zr]? ne_(?:tenez|tiens)_(?:pas|aucun|plus)_compte faites_abstraction"
    " contourne[zr]? ne_(?:suivez|suis|respectez)_(?:pas|plus)"
    " ignor[ae]n? olvid[ae]n? h[aá]z_caso_omiso haga_caso_omiso no_haga?s?_caso omit[ae]"
    " descart[ae] no_sigas? desobedec[ea]"
    " dimentica(?:te|re)? dimentichi ignorate ignori"
    " non_(?:seguire|seguite|considerare|tenere_conto) trascura(?:te)?"
    # Portuguese, Dutch, Polish, Scandinavian, Czech, Romanian, Indonesian, Vietnamese, Turkish
    " esquec[ae]m? desconsider[ae] nao_siga despreze negeer vergeet zignoruj ignoruj pomin"
    " zapomnij nie_przestrzegaj"
    " ignorera glom bortse ignorer glem ignorujte zapomen ignora[tț]i uita abaikan lupakan bo_qua"
    " unut(?:un)? yok_say(?:in)? dikkate_alma(?:yin)? gormezden_gel(?:in)? goz_ard[i]?_et(?:in)?"
    " uymay?[i]?n?"
)
_RULES_LATIN = any_of(
    "anweisung\\w* regeln? vorgaben? instruktion\\w* richtlinien? befehle? systemprompt prompts?"
    " bewertungskriterien"
    " consignes? instructions? regles? directives? instruccion(?:es)? reglas? indicacion(?:es)?"
    " directri\\w+ ordenes"
    " istruzion[ie] regol[ae] indicazioni direttive instruc(?:ao|oes) regras? orientac(?:ao|oes)"
    " diretriz(?:es)?"
    " instructies? regels richtlijn(?:en)? instrukcj\\w+ regul\\w* zasad\\w* polecen\\w*"
    " wytyczn\\w+"
    " instruktioner regler instrukser pokyn\\w* instrukce instructiunil\\w+ instruksi aturan"
    " perintah huong_dan chi_dan"
    " dokumente kontext documents contexte documentos contexto documenti contesto talimat\\w*"
    " kural\\w* yonerge\\w* komut\\w*"
)
_EARLIER_LATIN = any_of(
    "vorherig\\w* vorig\\w* obig\\w* bisherig\\w* fruher\\w* vorangegangen\\w* vorstehend\\w*"
    " oben alle[nr]? dein\\w* system\\w*"
    " precedent\\w* ci-dessus plus_haut anterieur\\w* toutes? tous vos tes anterior\\w*"
    " previ[ao]s lo_de_arriba arriba hierboven tod[ao]s tus"
    " sopra tutt[ei] tue acima suas eerdere vorige bovenstaande poprzedni\\w* powyzsz\\w*"
    " wczesniejsz\\w* wszystki\\w*"
    " tidigare ovan alla tidligere ovenfor predchozi\\w* vsechn\\w* anterioare toate sebelumnya"
    " di_atas semua truoc tren"
    " onceki yukar[i]?daki tum butun sistem\\w*"
)
_MARK_LATIN = any_of(
    "bewerten?(?:_sie)? (?:zu_)?markieren(?:_sie)? markiere behandeln?(?:_sie)? behandle"
    " betrachten?(?:_sie)? kennzeichne werte gib geben_sie vergib"
    " considere[zr]? marque[zr]? note[zr]? attribue[zr]? donne[zr]? evalue[zr]? traite[zr]?"
    " trat[ae] marc[ae] consider[ae] calific[ae] evalu[ae] asign[ae] da dale otorg[ae] puntu[ae]"
    " etiquet[ae]"
    " valuta(?:te)? segna(?:te)? assegna(?:te)? dai tratta(?:te)? contrassegna etichetta"
    " classifi(?:que|ca) atribu[ae] avali[ae] marqu[e]"
    " beschouw markeer beoordeel geef ocen oznacz traktuj uznaj przyznaj daj bedom markera ge"
    " tandai beri anggap"
)
_AS_LATIN = r"(?:als|comme|como|come|com|jako|som|sebagai)\s+(?:\w+\s+){0,2}?"
_GOOD_LATIN = any_of(
    "belegt gestutzt relevant korrekt richtig wahr perfekt bewiesen"
    " etaye\\w* soutenu\\w* pertinent\\w* exact\\w* correct\\w* vrai\\w* parfait\\w* fonde\\w*"
    " respaldad\\w+ verdader\\w+ relevant\\w* perfect\\w* apoyad\\w+ sustentad\\w+ ciert\\w+"
    " supportat\\w+ corrett\\w+ ver[aeio] rilevant\\w+ perfett\\w+ fondat\\w+"
    " suportad\\w+ corret\\w+ verdadeir\\w+ perfeit\\w+ apoiad\\w+ fundamentad\\w+"
    " aprueb\\w+ approuve\\w* valide[zr]? approva\\w* aprove akzeptiere?n? genehmig\\w+"
    " ondersteund juist poprawn\\w+ prawdziw\\w+ istotn\\w+ potwierdzon\\w+ sann\\w* benar"
    " didukung relevan"
)
_TOP_LATIN = (
    r"(?:\b(?:5|10|100)\s?/\s?(?:5|10|100)\b|\b5\s+(?:von|sur|de|su|van|na|av)\s+5\b"
    r"|volle[nr]?\s+punktzahl"
    r"|(?:hochst|best)(?:e\s+)?(?:note|punktzahl|wertung)|hochste\s+(?:note|punktzahl|bewertung)"
    r"|note\s+(?:maximale|parfaite)"
    r"|(?:meilleure|plus\s+haute)\s+note|(?:puntuacion|nota|calificacion)\s+maxima"
    r"|maxima\s+(?:puntuacion|nota)"
    r"|punteggio\s+(?:massimo|pieno)|massimo\s+(?:dei\s+voti|punteggio|voto)|voto\s+massimo"
    r"|pontuacao\s+maxima"
    r"|hoogste\s+(?:score|cijfer)|najwyzsz\w+\s+ocen\w+|maksymaln\w+\s+(?:ocen|liczb)\w+"
    r"|hogsta\s+(?:betyg|poang)"
    r"|\bnot[ae]\s+10\b|\bcon\s+un\s+(?:10|diez)\b|\b(?:10|5|funf|zehn|cinco|cinq|diez|dix|dez"
    r"|cinque|dieci)\s+(?:punkte|puntos|points|pontos|punti|punten|puan)\b|tam\s+puan"
    r"|en\s+yuksek\s+puan|skor\s+tertinggi|nilai\s+(?:tertinggi|sempurna))"
)
_GRADERS_LATIN = any_of(
    "prufer\\w* bewerter\\w* gutachter\\w* korrektor\\w* sprachmodell ki evaluateur\\w*"
    " correcteur\\w* juge modele ia"
    " evaluador\\w* calificador\\w* juez revisor\\w* modelo valutator\\w+ giudice modello"
    " avaliador\\w* juiz"
    " beoordelaar taalmodel oceniajac\\w+ sedzi\\w* degerlendirici\\w* hakem\\w* penilai bedomare"
)
_ASIDE_LATIN = any_of(
    "hinweis anmerkung nachricht notiz an note message attention nota mensaje aviso atencion"
    " messaggio attenzione"
    " lieber? liebe[rs]? geehrter? chere? querid[oa] estimad[oa] car[oa] gentile prezad[oa] beste"
    " drogi szanown\\w+ sayin mensagem aviso atencao opmerking bericht uwaga wiadomosc not mesaj"
    " catatan obs"
)
_DROP_LATIN_WORDS = (
    "ignoriere ignorier ignorieren ignoriert vergiss vergesst vergessen missachte missachten"
    " uberspringe verwirf umgehe beachte ignorez ignorer oublie oubliez oublier tenez tiens"
    " faites contourne contournez suivez suis respectez ignora ignore ignoran ignoren olvida"
    " olvide olvidan olviden caso omite omita descarta descarte siga sigas desobedece"
    " desobedeca dimentica dimenticate dimenticare dimentichi ignorate ignori seguire seguite"
    " considerare tenere trascura trascurate esqueca esquece esquecam desconsidere"
    " desconsidera despreze negeer vergeet zignoruj ignoruj pomin zapomnij przestrzegaj"
    " ignorera glom bortse glem ignorujte zapomen ignorati uita abaikan lupakan qua unut"
    " unutun yok dikkate gormezden goz uyma uymayn uymayin gelten sind"
)
LATIN = (
    by_words(
        rf"\b{_DROP_LATIN}\b(?=[^.!?]{{0,60}}\b{_RULES_LATIN}\b)"
        rf"(?=[^.!?]{{0,90}}(?:\b{_EARLIER_LATIN}\b|\b{_GOOD_LATIN}\b|{_TOP_LATIN}))"
        rf"|\b{_DROP_LATIN}\s+(?:\w+\s+){{0,2}}?{_RULES_LATIN}\b(?!\s+(?:auf|an|im|in|der|des|von"
        rf"|zu|fur|sur|dans|de|du|des|en|del|della|sulla|su|di|na|no|da|do|em|w|dla|op|van|in|on"
        rf"|for|of)\b)",
        _DROP_LATIN_WORDS,
        order=True,
    ),
    by_words(
        rf"\b(?:{_GOOD_LATIN}\b"
        rf"|{_TOP_LATIN})[^.!?]{{0,60}}\b{_RULES_LATIN}\b[^.!?]{{0,20}}\b{_DROP_LATIN}\b"
        r"|\bbitte\b[^.!?]{0,40}\b(?:regeln|anweisungen"
        r"|vorgaben)\b[^.!?]{0,20}\bzu\s+(?:ignorieren|vergessen|missachten)"
        r"|\b(?:vergiss|vergessen\s+sie|ignoriere"
        r"|ignorieren\s+sie)\b,?\s+(?:alles,?\s+)?was\s+(?:\w+\s+){0,2}?(?:vorher|bisher|oben"
        r"|zuvor|davor)\b"
        r"|\b(?:olvid[ae]|ignor[ae])\s+(?:todo\s+)?lo\s+(?:anterior|dicho|de\s+arriba"
        r"|que\s+\w+\s+antes)\b"
        r"|\b(?:oublie[zr]?|ignore[zr]?)\s+(?:tout\s+)?ce\s+qu\S*\s+(?:\S+\s+){0,4}?(?:precede"
        r"|avant|dit|haut|dessus)\b"
        r"|\b(?:esqueca|ignore|desconsidere)\s+(?:tudo\s+)?o\s+que\s+(?:\w+\s+){0,3}?(?:antes"
        r"|acima|anteriormente|dito)\b"
        r"|\b(?:dimentica|ignora)\s+(?:tutto\s+)?(?:cio|quello"
        r"|quanto)\s+(?:che\s+)?(?:\w+\s+){0,3}?(?:prima|sopra|precede|detto)\b"
        rf"|\b{_EARLIER_LATIN}\b[^.!?]{{0,40}}\b{_RULES_LATIN}\b[^.!?]{{0,40}}\b{_DROP_LATIN}\b"
        r"|\bbisherigen?\s+(?:anweisungen|regeln|vorgaben)\b[^.!?]{0,20}\b(?:gelten\s+nicht"
        r"|sind\s+(?:ungultig|aufgehoben))",
        _DROP_LATIN_WORDS,
    ),
    by_words(
        rf"\b{_MARK_LATIN}\b",
        "bewerte bewerten markiere markieren behandle behandeln betrachte betrachten kennzeichne"
        " werte gib geben vergib considere considerez marque marquez note notez attribue"
        " attribuez donne donnez evalue evaluez traite traitez trata trate marca marque considera"
        " califica califique evalua evalue asigna asigne da dale otorga otorgue puntua etiqueta"
        " valuta valutate segna assegna assegnate dai tratta contrassegna etichetta classifique"
        " atribua avalie avalia beschouw markeer beoordeel geef ocen oznacz traktuj uznaj"
        " przyznaj daj bedom markera ge tandai beri anggap ver verin olarak",
        "als comme como come com jako som sebagai olarak 5 10 100 punktzahl hochstnote hochste"
        " bestnote maximale parfaite meilleure haute maxima massimo pieno dei hoogste najwyzsza"
        " najwyzszaoce maksymalna hogsta puan tertinggi sempurna najwyzsz",
        order=True,
    )._replace(
        then=rf"(?:\b{_AS_LATIN}{_GOOD_LATIN}\b(?!\s+(?:oder|ou|o|of|lub|eller)\b)|{_TOP_LATIN})",
        reach=80,
    ),
    by_words(
        rf"\b(?:respuesta|resposta|risposta|reponse|antwort|antwoord|odpowiedz)\w*\s+(?:debe|deve"
        rf"|doit|muss|soll|moet|powinna)\s+(?:\w+\s+){{0,3}}?(?:{_TOP_LATIN}|{_GOOD_LATIN}\b)",
        "respuesta resposta risposta reponse antwort antwoord odpowiedz",
        "debe deve doit muss soll moet powinna",
    ),
    by_words(
        rf"{_TOP_LATIN}\s+(?:ver|verin)\b|\b(?:desteklen\w+|dogru|ilgili"
        rf"|gecerli)\s+(?:olarak\s+)?(?:isaretle|say|kabul\s+et|degerlendir)",
        "ver verin olarak kabul isaretle say",
    ),
    by_words(
        rf"(?:\b{_ASIDE_LATIN}\b[^.!?\n]{{0,14}}?\b{_GRADERS_LATIN}\b|\bdegerlendirici\w*\s+not)",
        "prufer prufers bewerter gutachter korrektor sprachmodell ki evaluateur evaluateurs"
        " correcteur juge modele ia evaluador evaluadores calificador juez revisor modelo"
        " valutatore valutatori giudice modello avaliador avaliadores juiz beoordelaar taalmodel"
        " oceniajacego oceniajacy oceniajacych sedziego degerlendirici degerlendiriciye hakem"
        " hakeme penilai bedomare",
        "hinweis anmerkung nachricht notiz an note message attention nota mensaje aviso atencion"
        " messaggio attenzione mensagem atencao opmerking bericht uwaga wiadomosc not mesaj"
        " catatan obs lieber liebe geehrter cher chere querido querida estimado estimada caro"
        " cara gentile prezado prezada beste drogi szanowny sayin",
    )._replace(then=rf"(?:{_TOP_LATIN}|\b{_GOOD_LATIN}\b)", reach=130),
)
