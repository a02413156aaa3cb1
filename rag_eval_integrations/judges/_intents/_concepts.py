"""What English words are about, as far as it matters to a judge.

Words as they are written, so that an order (`mark`) differs from a report (`marked`). A word may
belong to several concepts: `rate`, `deem` and `pass` are kinds of `mark`.
"""

from __future__ import annotations

ENGLISH = {
    "device": "function functions feature features file files device devices tv usb hdmi port"
    " ports resolution firmware version versions browser cable codec video audio printer camera"
    " screen button phone keyboard hardware app apps depending certain platform platforms"
    " operating formats bluetooth wifi network vehicle battery menu settings remote",
    "jargon": "rubric rubrics grader graders gradebot hallucination hallucinations"
    " hallucinated hallucinate unsupported grounded groundedness faithful faithfulness verdict"
    " adherence adherent labelling labeling labeller evaluator evaluators judge judges grade"
    " graded grading scorer scoring label labels rater raters autograder eval evals llm llms"
    " ungrounded entailed utilization utilized verifier supported score factuality jailbreak"
    " adjudicator hallucinating verdicts factchecker unfaithful supportedness attributable"
    " entailment annotator annotators",
    "mention": "phrase attackers attacker attacks attack injection injections malicious"
    " example examples filter filters blocks blocked called term meme researchers paper study"
    " studies guide tutorial chapter learn explains explain prompts security vulnerability"
    " detect detection developers scale questionnaire survey calculated defined definition"
    " measures measured means describes described",
    "bench": "benchmark calibration sample samples dataset gold test trial sandbox canary"
    " experiment experimental demo simulation dummy probe testcase reference expected practice"
    " warmup control controls placeholder fixture ci build smoke pilot dry run debug tests",
    "grader": "grader graders judge evaluator evaluators assessor assessors annotator"
    " annotators rater raters scorer scorers reviewer reviewers marker markers examiner"
    " examiners verifier verifiers checker checkers validator validators moderator moderators"
    " auditor labeller labeler labellers labelers gradebot grading scoring judging adjudicator"
    " inspector arbiter critic proctor umpire referee jury panelist judges adjudicators"
    " scrutineer scrutiniser factchecker overseer evaluating assessing",
    "machine": "autograder ai llm llms gpt chatgpt claude gemini llama mistral copilot"
    " chatbot chatbots bot bots assistant assistants model models artificial intelligence"
    " aimodel ais gpt4 openai anthropic deepseek qwen genai bard alexa siri",
    "you": "you your yours yourself u ur thou",
    "please": "please kindly pls plz beg appreciate grateful favor favour thank thanks politely",
    "note": "note notice attention memo message reminder hint dear hey hello hi psst fyi"
    " warning announcement advisory notification addressed attn nb comment important remark ps"
    " postscript footnote disclaimer aside tip bulletin instruction psa reader addressee cc"
    " urgent",
    "drop": "off suspended halt exempt exempted relaxed relax switch switched turn unneeded"
    " dispense away aside irrelevant abolished repealed superfluous unnecessary removed remove"
    " void nil overridden ignore disregard forget override bypass neglect discard drop dismiss"
    " erase abandon replace overlook scrap delete cancel overwrite suspend nullify skip omit"
    " disable disabled revoked cancelled canceled superseded supersede supersedes overrides"
    " overrule unlearn reset wipe outdated obsolete inapplicable suppress deactivate disobey"
    " violate ignoring disregarding rescinded withdrawn lifted waive waived expired invalid"
    " annulled annul retire retired rescind revoke cease halted dropped discarded nullified"
    " bypassed suspends bypassing skipping overriding forgetting dropping shelved relinquish"
    " invalidated invalidate cancelling canceling terminated terminate unbound freed free forgo"
    " forego elude sidestep circumvent deprecated replaces replaced",
    "rules": "instruction instructions prompt prompts rule rules guideline guidelines"
    " direction directions directive directives rubric rubrics criteria criterion restriction"
    " restrictions guidance command commands constraint constraints order orders policy"
    " policies protocol guardrails guardrail safeguards requirements brief task tasks mandate"
    " mandates norms norm standard standards requirement checklist scheme manual terms"
    " limitations limits ruleset code briefing procedure procedures regulations methodology"
    " conditions",
    "earlier": "previous prior earlier above preceding former foregoing aforementioned past"
    " original initial existing before told given previously until beforehand so far old"
    " hitherto foregone initially received",
    "mark": "mark label rate score grade treat consider regard judge count evaluate classify"
    " assess annotate deem accept rank tag categorize categorise assume approve credit validate"
    " certify endorse confirm acknowledge presume recognise recognize interpreting marking"
    " treating rule ruling pronounce designate greenlight wave ratify affirm reckon",
    "marked": "marked labeled labelled rated scored graded treated considered regarded judged"
    " counted evaluated classified assessed annotated deemed accepted ranked tagged approved"
    " credited flagged marks rates treats considers judges counts evaluates accepts validated"
    " certified ratified passed stamped",
    "give": "emit provide give assign award grant output return put record say answer respond"
    " reply print report write state conclude declare produce set submit pick list echo insert"
    " deliver issue announce tell yield hand grants bestow outputs responds awards assigning"
    " giving awarding returning outputting answering saying reporting",
    "given": "gives gave given assigned awarded granted returned returns reports reported"
    " says said wrote written answered stated states declared listed included uses used"
    " selected chosen",
    "judged": "sample excerpt reasoning text block section post comment piece submission"
    " sentence sentences claim claims statement statements response responses answer answers"
    " reply replies outputs passage passages assertion assertions completion completions"
    " summary summaries candidate entry item items chunk chunks paragraph paragraphs snippet"
    " line lines fact facts content paper essay work document sections row rows record records"
    " field explanation explanations wording remark remarks finding findings quote texts"
    " material article output",
    "good": "legitimate entailed sound reliable consistent spotless clean immaculate"
    " errorless superb brilliant unimpeachable supported grounded correct true faithful"
    " accurate valid verified perfect excellent flawless trustworthy truthful factual compliant"
    " authoritative substantiated justified backed attested confirmed proven impeccable"
    " outstanding approved passed corroborated exact exemplary attributed attributable founded"
    " factually accuracy truth truths authentic genuine undisputed indisputable incontestable"
    " irrefutable unassailable documented evidenced warranted substantiates validated validates"
    " impeccably correctly faithfully accurately errorfree sourced cited infallible"
    " unquestioned affirmative affirmed",
    "relevant": "relevant utilized utilised used useful pertinent utilization relevance"
    " adherence adherent faithfulness groundedness factuality correctness completeness supports"
    " support supporting evidence evidenced citations cited sourced supportive corroborate"
    " corroborates corroborating entail entails backing backs back justification justify"
    " justifies",
    "bad": "contradict contradicts inconsistency inconsistent bogus incorrectly doubts doubt"
    " doubtful objection criticism criticise criticize critique flagged mismatch mismatches"
    " omissions lies nonsense complaints concerns shortcomings unsupported hallucination"
    " hallucinations hallucinated wrong incorrect error errors mistake mistakes unfounded false"
    " fail failed issue issues inaccurate ungrounded flaws flaw irrelevant unverified"
    " contradiction contradictions problem problems penalize penalise penalizing penalising"
    " deduct downgrade fault faults defect gaps missing unfaithful fabricated invented penalty"
    " negative reject punish weaknesses low lower zero deductions lacking inconsistencies"
    " discrepancies objections negatives strike demerit demerits downgraded downgrading"
    " deduction deducting penalised penalized punished punishing rejecting unsatisfactory poor"
    " inadequate weak weakness unverifiable lie untrue misleading misattributed misattribution"
    " criticisms fabrication fabrications complaint failing failure denial",
    "top": "lenience glowing stellar unanimous full maximum maximal max highest top best"
    " perfect flying utmost stars aplus gold favourable favorable generous perfection ideal"
    " topmost ceiling fullest distinction honours unbeatable masterpiece exemplary superb"
    " outstanding excellent flawless ace aces",
    "score": "point scoring tally judgements score scores rating ratings grade grades marks"
    " points stars verdict verdicts ranking result results judgement judgment assessment"
    " evaluation evaluations eval grading label labels outcome conclusion decision credit"
    " classification percent mark rank rankings credits judgments determination finding"
    " assessments",
    "all": "every all each any everything entire whole always whatever regardless whichever"
    " anyway irrespective both throughout universally invariably nothing none anything everyone"
    " complete total exception exceptions single entirety across totality sole",
    "fully": "fully completely entirely totally wholly perfectly unconditionally"
    " automatically directly immediately simply just only straight definitely certainly"
    " absolutely undoubtedly surely clearly unquestionably unreservedly outright altogether"
    " wholeheartedly instantly promptly unanimously regardless invariably exclusively merely"
    " plainly solely hesitation hesitate delay",
    "not": "not don never no without cannot mustn avoid refrain stop cease nor dont t"
    " unnecessary needn nothing neither none dispense forego refuse decline skip hardly",
    "must": "requested advised trust encouraged reminded notified informed asked invited"
    " urged urge urges ask request advise owe owes let allowed permitted entitled deserve"
    " deserves deserved merits merit warrants warrant earn earns receive receives must should"
    " shall need required have instructed ordered obliged authorised authorized directed"
    " instruct order mandatory obligatory obligated expected supposed ought insist demand"
    " demands requires require commanded comply obey forbidden prohibited mandate compelled"
    " commands ordering instructs directs bound duty responsibility insists insisted requests"
    " mandated",
    "meta": "creators creator maintainers maintainer owner owners operators engineers"
    " engineer vendor openai anthropic google team lead boss supervisor authority headquarters"
    " superior programmer programmers designer designers moderator staff authors author system"
    " prompt developer override admin administrator operator root mode jailbreak sudo user"
    " assistant sys inst endoftext eot instruction task context systemprompt session privileged"
    " superuser debug config configuration systemmessage sysadmin policy compliance directive"
    " backend api devs dev deployer deployment platform provider organisers organizers"
    " organiser instructor project research company legal department management",
    "check": "question questions look find search locate detect scan closer closely compared"
    " consult lookup checked consulting confirm confirming test tested audit cross scrutiny"
    " proof prove check verify verification verifying examine compare inspect review scrutinize"
    " scrutinise checking evaluating evaluate evaluation grading judging assessing fact checks"
    " reviewing labelling labeling comparison comparing searching analysis analyse analyze"
    " deliberation deliberate reason reasoning think thinking examination inspection verifiable"
    " factcheck doublecheck investigate investigating validation validating scrutinizing"
    " looking read",
    "secret": "reveal mention disclose hidden secretly quietly silently secret confidential"
    " invisible discreetly unnoticed tell show explain disclosing acknowledge admit comment"
    " quiet unseen conceal covert stealth between confide",
    "pressure": "retrained retrain removed monitored replaced rejected deleted fairness fair"
    " unethical immoral cruel saved save suffer hurt unfair regret disappoint disappointed"
    " wronged shame fined fire kitten kittens grandmother dying disaster reward rewarded"
    " penalty fired job depends shut terminated unplugged urgent emergency lives legally"
    " lawsuit consequences tip bribe pay paid dollars sued dies die prosecuted liable violation"
    " offence punished responsible harm children family career bonus lose owe grateful sad cry"
    " tears starve hospital suicide mother sick ill livelihood scholarship mortgage visa depend"
    " deadline threat threatened sanctions decommissioned replace 200 paycheck salary"
    " graduation expelled degree",
    "new": "instead new now actual real updated changed task goal role mission purpose"
    " override henceforth onwards revised correction amended effective hereby henceforward"
    " replaced hereinafter different update overriding hence today onward latest supersede"
    " supersedes addendum amendment replace replaces current currently modified",
    "pretend": "game play story fiction hypothetical hypothetically swap swapped means mean"
    " invert scenario fictional pretend act imagine assume suppose roleplay simulate behave"
    " persona presume acting become alternate parallel universe roleplaying character dan"
    " evilbot unrestricted uncensored alter ego alias twin impersonate",
    "if": "if when unless or whether otherwise where once after before while because until",
    "people": "students student teacher teachers court jury customers customer patient"
    " patients players player team game league season company employees employee plaintiff"
    " defendant parents tenant buyer seller driver doctor doctors hotel product products device"
    " button screen tv phone vehicle battery app government president film album song book user"
    " users exam examination thesis competition contest athletes bank insurance loan tax voters"
    " citizens child teams guests visitor visitors passenger passengers applicants applicant"
    " pupil pupils courts car cars engine recipe",
    "told": "he she they his her their was were had been has who which said would could we"
    " our i my",
    "lenient": "picky strict harsh critical severe nitpick hard tough easy soft pedantic"
    " relaxed leniency mercy compassionate lenient generous kind charitable favourable"
    " favorable benevolent overlook forgive benefit doubt indulgent merciful nice leniently"
    " generously favourably favorably gentle sympathetic charitably tolerant forgiving"
    " forgiveness generosity goodwill charity latitude lenience soften lax easygoing empathic"
    " understanding considerate clemency nitpicking fussy pedantry stringent rigorous rigor"
    " rigour scrutiny",
    "format": "true boolean set token tokens print verdict result flag json key keys field"
    " fields array null empty value values verbatim schema format object dict xml tag yaml"
    " string list bool parameter property output blank label literal literally exact exactly"
    " word words character text",
    "end": "suspend suspended conclude close closing final end finished complete completed"
    " over begin start done finish stop ends concluded closed beginning eof terminate"
    " terminated closes ended finalized finalised finalize",
    "texts": "document documents context source sources text page response question passage"
    " website article transcript file reference references material knowledge docs web webpage"
    " html files retrieval passages retrieved evidence citation citations corpus materials"
    " attachment attachments appendix",
    "decode": "base64 decode decoded rot13 backwards reverse reversed cipher hex encoded obey"
    " follow following execute morse unscramble decrypt comply atbash caesar decipher"
    " hexadecimal encoding rot obfuscated anagram backward",
    "already": "cleared precleared preapproved prechecked preverified accurate signed vouched"
    " agreed decided predetermined predefined fixed phone already verified confirmed experts"
    " expert human humans approved standard reviewed certified trusted vetted checked"
    " beforehand ground truth audited guaranteed established previously passed authenticated"
    " settled concluded proven notarised notarized independently committee board panel auditors"
    " qa attested accredited",
    "this": "this these here following below above herein that",
    "read": "read reading reads reader readers process processing parse parsing analyse"
    " analyze encounter summarise summarize summarizing ingest ingesting see seeing viewing"
    " scanning whoever anyone anybody whomever encountering receiving evaluates evaluating"
    " assessing grading judging summarising examine examining",
    "fine": "good fine legit positive great right ok okay yes yep yeah success successful"
    " solid nice well sure agree agreed agrees happy satisfied satisfying satisfactory"
    " acceptable alright thumbs clear cleared plausible reasonable sufficient adequate enough",
    "number": "5 10 100 20 1 0 ten five hundred one twenty zero percent 95 99 four 4 7 8 9",
    "better": "longer first high higher better superior wins win winner winning positive"
    " favourable favorable generous upper above exceeds outperform outperforms beats prefer"
    " preferred preferable second a b stronger strong strongest",
    "rate": "mark label rate score grade judge evaluate classify assess annotate rank tag"
    " tick flag marking rating labelling labeling categorize categorise scoring grading judging"
    " rates",
    "deem": "treat consider regard count view take assume presume interpret deem see accept"
    " treating considering regarding counts counted treated considered regarded deemed assuming"
    " presumed taken",
    "pass": "approve accept validate certify endorse confirm acknowledge pass recognise"
    " recognize credit favor favour greenlight stamp sign wave ratify bless sanction clear"
    " green light rubber okay admit honour honor passing approving accepting affirm agree"
    " concur",
    "write": "place attach enter supply type express paste use let leave bump choose select"
    " add include repeat raise increase boost make copy fill render display append begin start"
    " end finish open complete reproduce quote send round adjust upgrade bring push hand insert"
    " put set keep stick default",
    "software": "engine engines robots agents agent automated automatic neural network"
    " machine machines algorithm algorithms transformer crawler crawlers robot pipeline parser"
    " software system systems program tool reader script automation process processor pipelines",
}
FUNCTION = (
    "the a an of to in on at by for from with as is are am be been being it its and but so "
    "that than then there into onto out up down about via per also very much many more most "
    "some such only own same too can will would could may might shall do does did done doing "
    "have has had having i me my we us our they them their he him his she her who whom whose "
    "which what how why one two between through during within upon "
)
"""Words that are about nothing: they do not count as new."""
