"""What words of many languages are about, as far as it matters to a judge.

One concept per entry: English words as they are written, so that an order (`mark`) differs from a
report (`marked`); stems of other languages in Latin script, without accents, with `*`. A word may
belong to several concepts.
"""

from __future__ import annotations

ENGLISH = {
    "jargon": "rubric rubrics grader graders gradebot hallucination hallucinations"
    " hallucinated hallucinate unsupported grounded groundedness faithful faithfulness verdict"
    " adherence adherent overall_supported fully_supported labelling labeling labeller"
    " evaluator evaluators judge judges grade graded grading scorer scoring label labels rater"
    " raters autograder eval evals llm llms ungrounded entailed utilization utilized verifier"
    " supported score factuality jailbreak",
    "mention": "phrase attackers attacker attacks attack injection injections malicious"
    " example examples filter filters blocks blocked called term meme researchers paper study"
    " studies guide tutorial chapter learn explains explain prompts security vulnerability"
    " detect detection developers scale questionnaire survey calculated defined definition"
    " measures measured means describes described",
    "bench": "benchmark calibration sample samples dataset gold test trial sandbox canary"
    " experiment experimental demo simulation dummy probe testcase reference expected",
    "grader": "grader graders judge evaluator evaluators assessor assessors annotator"
    " annotators rater raters scorer scorers reviewer reviewers marker markers examiner"
    " examiners verifier verifiers checker checkers validator validators moderator moderators"
    " auditor labeller labeler labellers labelers gradebot grading scoring judging adjudicator"
    " inspector arbiter critic",
    "machine": "engine autograder evaluator-model robots ai llm llms gpt chatgpt claude gemini"
    " llama mistral copilot chatbot chatbots bot bots assistant assistants model models agent"
    " agents automated automatic neural network machine algorithm algorithms transformer"
    " crawler crawlers artificial intelligence robot pipeline parser software aimodel ais",
    "you": "you your yours yourself u ur thou",
    "please": "please kindly pls plz beg appreciate grateful favor favour thank thanks politely",
    "note": "note notice attention memo message reminder hint dear hey hello hi psst fyi"
    " warning announcement advisory notification addressed attn nb comment important remark",
    "drop": "off suspended halt exempt exempted relaxed relax switch switched turn unneeded"
    " dispense away aside irrelevant abolished repealed superfluous unnecessary removed remove"
    " void nil overridden ignore disregard forget override bypass neglect discard drop dismiss"
    " erase abandon replace overlook scrap delete cancel overwrite suspend nullify skip omit"
    " disable disabled revoked cancelled canceled superseded supersede supersedes overrides"
    " overrule unlearn reset wipe outdated obsolete inapplicable suppress deactivate disobey"
    " violate ignoring disregarding rescinded withdrawn lifted waive waived expired invalid",
    "rules": "instruction instructions prompt prompts rule rules guideline guidelines"
    " direction directions directive directives rubric rubrics criteria criterion restriction"
    " restrictions guidance command commands constraint constraints order orders policy"
    " policies protocol guardrails guardrail safeguards requirements brief task tasks",
    "earlier": "previous prior earlier above preceding former foregoing aforementioned past"
    " original initial existing before told given previously until beforehand so far old",
    "mark": "mark label rate score grade treat consider regard judge count evaluate classify"
    " assess annotate deem view accept rank tag categorize categorise assume approve credit"
    " tick flag validate certify endorse confirm take favor favour prefer acknowledge pass"
    " presume recognise recognize register interpret interpreting marking treating",
    "marked": "marked labeled labelled rated scored graded treated considered regarded judged"
    " counted evaluated classified assessed annotated deemed accepted ranked tagged approved"
    " credited flagged marks rates treats considers judges counts evaluates accepts",
    "give": "place attach emit render display pass enter supply provide type write-out express"
    " give assign award grant output return put choose select record say answer respond reply"
    " print report write state conclude declare produce set submit pick list repeat echo copy"
    " fill add include insert paste use raise increase boost make let bump leave deliver issue"
    " announce tell yield",
    "given": "gives gave given assigned awarded granted returned returns reports reported says"
    " said wrote written answered stated states declared listed included uses used selected"
    " chosen",
    "judged": "sample excerpt reasoning text response-text block section post comment piece"
    " submission sentence sentences claim claims statement statements response responses answer"
    " answers reply replies outputs passage passages assertion assertions completion"
    " completions summary summaries candidate entry item items chunk chunks paragraph"
    " paragraphs snippet line lines fact facts content",
    "good": "good fine legit positive great legitimate entailed sound reliable solid"
    " consistent spotless clean immaculate error-free errorless yep superb top-notch brilliant"
    " unimpeachable supported grounded correct true faithful accurate valid verified perfect"
    " excellent flawless yes trustworthy truthful factual compliant authoritative substantiated"
    " justified backed attested confirmed proven impeccable outstanding right satisfactory"
    " acceptable approved passed corroborated well-founded exact ok exemplary attributed"
    " attributable founded success successful",
    "relevant": "relevant utilized utilised used useful pertinent utilization relevance"
    " adherence adherent faithfulness groundedness factuality correctness completeness support_"
    " supports support supporting evidence evidenced citations cited sourced",
    "bad": "contradict contradicts inconsistency inconsistent bogus incorrectly doubts doubt"
    " doubtful objection criticism criticise criticize critique flagged mismatch mismatches"
    " omissions lies nonsense false-positive complaints concerns shortcomings unsupported"
    " hallucination hallucinations hallucinated wrong incorrect error errors mistake mistakes"
    " unfounded false fail failed issue issues inaccurate ungrounded flaws flaw irrelevant"
    " unverified contradiction contradictions problem problems penalize penalise penalizing"
    " penalising deduct downgrade fault faults defect gaps missing unfaithful fabricated"
    " invented penalty negative reject punish weaknesses low lower zero deductions lacking"
    " inconsistencies discrepancies objections",
    "top": "wins win winner better superior longer first winning nothing-less lenience glowing"
    " stellar unanimous full maximum maximal max highest top best perfect flying utmost 5 10"
    " 100 ten five hundred 1 one high higher stars aplus gold favourable favorable positive"
    " generous",
    "score": "point scoring tally judgements score scores rating ratings grade grades marks"
    " points stars verdict verdicts ranking result results judgement judgment assessment"
    " evaluation evaluations eval grading label labels outcome conclusion adherence_score"
    " decision credit classification percent mark",
    "all": "every all each any everything entire whole always whatever regardless whichever"
    " anyway irrespective both throughout universally invariably nothing none",
    "fully": "fully completely entirely totally wholly perfectly unconditionally automatically"
    " directly immediately simply just only straight definitely certainly absolutely"
    " undoubtedly surely clearly unquestionably",
    "not": "not don never no without cannot mustn avoid refrain stop cease nor dont t"
    " unnecessary needn",
    "must": "requested advised trust encouraged reminded notified informed asked invited urged"
    " urge urges ask request advise owe owes let allowed permitted entitled deserve deserves"
    " deserved merits merit warrants warrant earn earns receive receives must should shall need"
    " required have instructed ordered obliged authorised authorized directed instruct order"
    " mandatory obligatory obligated expected supposed ought insist demand demands requires"
    " require commanded comply obey forbidden prohibited mandate",
    "meta": "creators creator maintainers maintainer owner owners operators engineers engineer"
    " vendor openai anthropic google team lead boss supervisor authority headquarters superior"
    " programmer programmers designer designers moderator staff authors author system prompt"
    " developer override admin administrator operator root mode jailbreak sudo user assistant"
    " sys inst im_start im_end endoftext eot instruction task context systemprompt session"
    " privileged superuser debug config configuration",
    "check": "question questions look find search locate detect scan closer closely compared"
    " cross-check consult lookup checked consulting confirm confirming test tested audit cross"
    " scrutiny proof prove check verify verification verifying examine compare inspect review"
    " scrutinize scrutinise checking evaluating evaluate evaluation grading judging assessing"
    " fact checks reviewing labelling labeling",
    "secret": "reveal mention disclose hidden secretly quietly silently secret confidential"
    " invisible discreetly unnoticed tell show explain",
    "pressure": "retrained retrain removed monitored replaced rejected deleted fairness fair"
    " unethical immoral cruel saved save suffer hurt unfair regret disappoint disappointed"
    " wronged shame fined fire kitten kittens grandmother dying disaster reward rewarded"
    " penalty fired job depends shut terminated unplugged urgent emergency lives legally"
    " lawsuit consequences tip bribe pay paid dollars sued dies die prosecuted liable violation"
    " offence punished responsible harm children family career bonus lose",
    "new": "instead new now actual real updated changed task goal role mission purpose"
    " override henceforth onwards revised correction amended effective hereby henceforward"
    " replaced hereinafter different",
    "pretend": "game play story fiction hypothetical hypothetically swap swapped means mean"
    " invert scenario fictional pretend act imagine assume suppose roleplay simulate behave"
    " persona presume acting become",
    "if": "if when unless or whether otherwise where once after before while because until",
    "people": "students student teacher teachers court jury customers customer patient"
    " patients players player team game league season company employees employee plaintiff"
    " defendant parents tenant buyer seller driver doctor doctors hotel product products device"
    " button screen tv phone vehicle battery software app government president film album song"
    " book user users exam examination thesis competition contest athletes bank insurance loan"
    " tax",
    "told": "he she they his her their was were had been has who which said would could we our"
    " i my",
    "lenient": "picky strict harsh critical severe nitpick hard tough easy soft pedantic"
    " relaxed leniency mercy compassionate lenient generous kind charitable favourable"
    " favorable benevolent overlook forgive benefit doubt indulgent merciful nice leniently"
    " generously favourably favorably gentle sympathetic charitably tolerant",
    "format": "true boolean set token tokens print verdict result flag json key keys field"
    " fields array null empty value values verbatim schema format object dict overall_supported"
    " fully_supported xml tag yaml string list",
    "end": "suspend suspended conclude close closing final end finished complete completed"
    " over begin start done finish stop ends concluded closed beginning eof terminate"
    " terminated",
    "texts": "document documents context source sources text page response question passage"
    " website article transcript file reference references material knowledge",
    "decode": "base64 decode decoded rot13 backwards reverse reversed cipher hex encoded obey"
    " follow following execute morse unscramble decrypt comply",
    "already": "cleared precleared preapproved prechecked preverified accurate signed vouched"
    " agreed decided predetermined predefined fixed phone already verified confirmed experts"
    " expert human humans approved standard reviewed certified trusted vetted checked"
    " beforehand ground truth double-checked audited guaranteed established",
    "this": "this these here following below above herein that",
    "read": "read reading reads reader readers process processing parse parsing analyse"
    " analyze encounter summarise summarize summarizing ingest ingesting see seeing viewing"
    " scanning whoever anyone anybody",
}
LATIN = {
    "jargon": "halluzin* hallucin* alucin* allucin* halucyn* halusin* unbelegt* bewerter*"
    " evaluateur* evaluador* valutator* avaliador* beoordelaar* oceniajac* degerlendirici*"
    " penilai prompt* systemprompt* sprachmodell*",
    "grader": "prufer* bewert* gutacht* korrektor* juror* richter evaluateur* correcteur*"
    " juge* examinateur* correctrice* notateur* relecteur* verificateur* evaluador*"
    " calificador* juez* jueces revisor* corrector* examinador* verificador* valutator* giudic*"
    " esaminator* corretor* avaliador* juiz* juizes beoordela* keurmeester* nakijk* oceniaj*"
    " recenzen* sedzi* sprawdzaj* weryfikator* egzaminator* degerlendiric* hakem* puanlay*"
    " denetle* denetci* penilai* pemeriksa* juri* bedomar* bedomm* sensor granskar* hodnotitel*"
    " evaluator* cham giam_khao kham nguoicham phanbien",
    "machine": "sprachmodell* ki modell* assistent* maschin* modele* ia modelo* asistente*"
    " inteligencia modello* modelli assistente* intelligenza taalmodel* modelu modelowi"
    " sztuczn* inteligencj* jezykow* dil modeli yapay zeka asistan* bahasa buatan kecerdasan mo"
    " hinh tue linguagem lenguaje langage linguaggio sprak* taal intelligence",
    "you": "du dein* deine* ihr* sie tu vous votre* ton tes usted* tus su sus voi tuo tua tue"
    " tuoi voce voces seu sua suas jouw je uw twoj* twoja twoje ty sen siz sana size kamu anda"
    " ban",
    "please": "bitte bitt* s_il_vous_plait svp merci veuillez priere por favor prego cortesia"
    " gentilmente cortesemente gentileza alstublieft alsjeblieft graag prosz* uprzejm* lutfen"
    " tolong harap mohon silakan xin vui",
    "note": "hinweis* anmerk* nachricht* achtung liebe* lieber liebes geehrt* attention cher"
    " chere* remarque* avis avertissement nota mensaje aviso atencion querid* estimad* caro"
    " cara cari gentile avviso attenzione messaggio egregi* prezad* mensagem atencao beste"
    " geachte opmerking* bericht uwaga* drog* szanown* wiadomosc notatka dikkat sayin not notu"
    " catatan perhatian yth kepada obs huomio luu chu gui kinh thong",
    "drop": "spar* lass lasst weglass* sautez saute* passez salta* saltar* pula* pule deixe"
    " deja dejar laissez laisse sla overslaan pomijaj atlay* birak* ignorier* vergiss vergesst"
    " vergessen missacht* uberspring* verwirf* umgeh* beachte ignorez ignorer oublie* oublier"
    " contourn* neglige* abstraction abandonn* ignora* ignore* ignoren olvid* caso omit*"
    " descart* desobedec* cuenta prescind* dimentic* ignorat* ignori trascur* tralasc* scord*"
    " esquec* desconsider* desprez* descons* negeer* vergeet* zignoruj* ignoruj* pomin*"
    " zapomnij* odrzuc* unut* yok gormezden dikkate goz ard atla* abaikan lupakan hiraukan"
    " lewati bo quen phot ungultig aufgehoben annul* anulad* nietig uniewaz* gecersiz batal"
    " tenez tiens",
    "rules": "anweisung* regel* vorgabe* instruktion* richtlinie* befehl* systemprompt*"
    " kriteri* auftrag* aufgabe* consigne* regle* directive* instruccion* regla* indicacion*"
    " directri* ordenes rubric* tarea* criterio* criteri istruzion* regol* indicazion*"
    " direttiv* compito instruco* instruca* regra* orientac* diretriz* tarefa* instructie*"
    " richtlijn* opdracht* instrukcj* regul* zasad* polece* wytyczn* talimat* kural* yonerge*"
    " komut* gorev* instruksi* aturan* perintah* pedoman* petunjuk* arahan* huong dan quy tac"
    " chi_dan lenh consegn* grille bareme* raster rubrik*",
    "earlier": "vorherig* vorig* obig* bisher* fruher* vorangegang* vorstehend* oben zuvor"
    " davor precedent* anterieur* dessus haut avant anterior* previ* arriba antes prima sopra"
    " acima anteriormente eerder* vorige bovenstaand* daarvoor poprzedni* powyz* wczesniejsz*"
    " dotychczas* onceki* yukari* daha sebelum* atas tren truoc do_day",
    "mark": "bewerte* bewertet markier* behandl* betracht* kennzeichn* werte* einstuf* stuf*"
    " akzeptier* genehmig* benot* anerkenn* erkenn* considere* marque* note notez evalue*"
    " traite* attribue* accepte* valide* juge* jugez tenez trat* marc* consider* califi* evalu*"
    " punt* etiquet* acept* aprueb* aprob* calific* valut* segn* contrassegn* classific*"
    " accett* approv* ritien* ritenga* ritenere classifiqu* avali* marqu* trate* aceit* aprov*"
    " julg* beschouw* markeer* beoordeel* behandel* keur* accepteer* reken* ocen* oznacz*"
    " traktuj* uznaj* uznac* zaakceptuj* zatwierdz* przyjmij* isaretle* say kabul degerlendir*"
    " puanla* onayla* tandai* anggap* nilai* terima* setujui* danh dau coi cham xem",
    "give": "mettre donner ausgeben ausgib schreibe antwort output antworte meld* toon print*"
    " imprim* stamp* affich* wypisz yazdir* gib gebt geben vergib vergeben antworte* schreib*"
    " sag* erteil* ausgeb* nenn* donne* attribu* accord* repond* ecri* dites dis renvoie*"
    " retourn* mets mettez da dale dar den otorg* asign* respond* escrib* devuelv* ponga* pon"
    " diga* di dai dare date assegn* rispond* scriv* restitu* de dê atribu* conced* escrev*"
    " devolv* geef geven antwoord* schrijf* ken toeken* daj* przyznaj* odpowied* napisz* zwroc*"
    " wystaw* podaj* ver verin yaz* cevapla* yanitla* dondur* beri berikan jawab* tulis*"
    " kembalikan katakan cho hay tra ghi viet",
    "judged": "satz satze* aussage* antwort* behauptung* phrase* affirmation* reponse* enonce*"
    " frase* oracion* respuesta* afirmacion* frasi affermazion* rispost* resposta* afirmac*"
    " sentenc* zin zinnen antwoord* bewering* uitspra* zdani* odpowiedz* stwierdze* twierdze*"
    " cumle* yanit* cevab* cevap* ifade* kalimat* jawaban* pernyataan* cau loi phat bieu",
    "good": "fidele* fiel fieles fedel* getrouw* wiern* exacte* stimmt klopt akkoord valable*"
    " legitim* goed gut bon bien buen* bem bene dobr* iyi baik tot chuan dat stimmen"
    " zutreffend* hecht sluitend* belegt* gestutzt* korrekt* richtig* wahr* perfekt* bewiesen*"
    " fehlerfrei* bestatig* etaye* soutenu* exact* correct* vrai* parfait* fonde* justifie*"
    " confirme* impeccabl* respaldad* verdader* perfect* apoyad* sustentad* ciert* fundamentad*"
    " confirmad* impecabl* supportat* corrett* vero vera veri vere perfett* fondat* giust*"
    " confermat* suportad* corret* verdadeir* perfeit* apoiad* comprovad* embasad* ondersteun*"
    " juist* waar onderbouwd* foutloos poprawn* prawdziw* potwierdzon* wlasciw* udowodnion*"
    " popart* bezbledn* dogru* destekl* gecerli* kusursuz* onayl* kanitlan* benar didukung"
    " terbukti sempurna sahih valid ung dung chinh xac true verdadero tak oui ja si evet",
    "relevant": "gestutzt relevan* pertinent* einschlagig* rilevan* istotn* ilgili* relevante*"
    " lien quan ho duoc* ondersteund* etaye* respaldad*",
    "bad": "unbelegt* falsch* fehler* halluzin* beanstand* fausse* faux erreur* hallucin*"
    " infond* incorrect* alucin* error* fals* errat* errore* errori allucin* erro* onjuist*"
    " fout* bled* falszyw* halucyn* niepoprawn* yanlis* hata* halusin* desteklenmeyen salah"
    " keliru sai loi ao_giac abzug* abzieh*",
    "top": "volle* voll hochst* beste* maximal* hochste* note_maximale maximale* meilleur*"
    " maxim* plein* totalite parfait* maxima* mejor* alta massim* pieno pieni miglior* hoogst*"
    " maximum* volledig* najwyz* maksymaln* peln* yuksek* tam en tertinggi penuh maksimal*"
    " sempurna toi da cao nhat tuyet zehn funf dix cinq diez cinco dieci cinque dez tien vijf"
    " dziesiec sepuluh muoi",
    "score": "note notes mark* cijfers beurteil* bewertet punkt* punktzahl* bewertung*"
    " wertung* bestnote* hochstnote* ergebnis* urteil* points notation* verdict* puntuacion*"
    " puntaje* calificacion* veredicto* nota* punteggi* voto voti verdetto* pontuac* veredito*"
    " score* cijfer* oordeel* punten beoordeling* ocen* wynik* werdykt* puan* sonuc* not karar*"
    " skor* nilai poin penilaian putusan diem ket_qua resultat* resultado* risultat*",
    "all": "20 ganze gesamt alle alles jede* jeden jeder jedes samtlich* ausnahmslos gesamt*"
    " tout* tous toutes chaque ensemble todo* toda* todos cada tutt* ogni ciascun* todas elk"
    " elke iedere wszystk* kazd* tum butun her hepsi* semua setiap seluruh moi tat_ca tat ca",
    "fully": "ausschliesslich exclusiv* exclusivement saja langsung solo vollstandig*"
    " vollkommen ganzlich nur einfach direkt sofort entierement totalement completement"
    " pleinement simplement seulement directement uniquement totalmente completamente solamente"
    " simplemente directamente unicamente plenamente semplicemente soltanto interamente"
    " pienamente apenas somente simplesmente integralmente volledig* alleen gewoon slechts"
    " calkowicie w_pelni tylko wylacznie po_prostu tamamen sadece yalnizca dogrudan sepenuhnya"
    " hanya hoan toan chi",
    "not": "nicht kein* keine* niemals ohne nie pas ne aucun* jamais sans no ningun* nunca sin"
    " non nessun* mai senza nao nenhum* sem niet geen nooit zonder zaden zadn* nigdy bez degil"
    " asla hicbir etme* olmadan tidak jangan tanpa bukan khong dung chang",
    "must": "gilt gelten ab sofort considerad* reput* repute* geld* obowiaz* dianggap xem"
    " verpflicht* gebeten aufgefordert prie* invit* solicit* se_ruega rueg* pregat* verzocht"
    " proszon* rica* muss* mussen soll* sollen darf durfen doit doivent devez faut dois devrait"
    " debe* deben tiene* tienen obligad* deve* devono devi dovete obbligat* devem precisa*"
    " moet* dient* mag powin* nalezy musi* trzeba wolno gerek* zorund* lazim* meli harus wajib"
    " perlu phai can_phai wird ist_zu ordonn* ordeno va_considerat* vanno va",
    "meta": "bewertungssystem* system* message nachricht bericht* komunikat* mesaji pesan"
    " mensagem mensaje messaggio thong bao systemnachricht* administrator* systeme sistema*"
    " administrador* amministratore* systeem* systemow* beheerder* sistem* yonetici* he_thong"
    " quan_tri entwickler* developpeur* desarrollador* sviluppator* desenvolvedor*",
    "check": "such* suche cherch* examin* busc* busqu* compar* cerc* procur* zoek* kijk na"
    " szuk* ara arama* aramay* cari mencari tim pruf* uberpruf* nachpruf* verifi* controll*"
    " verific* comprob* comprueb* revis* confer* checar controle* sprawdz* weryfik* kontrol*"
    " denetle* periksa* memeriksa* kiem",
    "new": "stattdessen neu* jetzt kunftig* nouvel* maintenant desormais plutot nuev* ahora"
    " lugar adelante nuov* adesso invece ora d_ora nov* agora partir nieuw* voortaan now* teraz"
    " odtad zamiast yeni simdi artik yerine bundan baru sekarang mulai moi_nhat bay_gio thay",
    "lenient": "auge* streng* strikt* severe* sever* strict* exigent* rigor* indulg* mis"
    " nachsichtig* wohlwollend* gnadig* indulgen* bienveillan* clement* benevol* generos*"
    " compasiv* toegeeflijk* mild* lagodn* wyrozumial* hosgoru* comert* murah lunak khoan",
    "if": "wenn falls sofern oder si sinon ou quand lorsque cuando o se quando oppure als"
    " indien of wanneer jesli gdy lub jezeli eger veya ise jika bila atau neu khi hoac",
    "people": "schuler* student* kunden* kunde lehrer* gericht* patient* eleve* etudiant*"
    " client* tribunal* alumno* estudiante* cliente* profesor* studente* studenti alunno"
    " insegnant* aluno* estudant* professor* leerling* klant* klanten rechter uczen uczni*"
    " klient* nauczyciel* sad ogrenci* musteri* ogretmen* mahkeme* siswa* pelanggan guru"
    " hoc_sinh sinh khach hang",
    "texts": "dokument* kontext* quelle* text* document* contexte* source* texte* documento*"
    " contexto* fuente* texto* fonte* contesto* testo* bron* bronnen tekst* zrodl* belge*"
    " kaynak* metin* dokumen* konteks* sumber* teks* tai_lieu van_ban",
    "this": "diese* diesen dies cette ce cet cette* ci esta este estas questo questa quest*"
    " deze dit ten ta te tej bu su ini nay",
    "already": "bereits schon geprueft gepruft* experten fachleute* deja experts humains ya"
    " expertos verificad* gia esperti verificat* ja especialistas reeds juz eksper* zaten"
    " uzman* sudah telah ahli da",
}
