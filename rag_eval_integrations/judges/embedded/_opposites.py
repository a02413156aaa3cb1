"""Words of opposite meaning, by their stems: in copied text, one for the other is an error."""

from __future__ import annotations

from rag_eval_integrations.judges.embedded._words import stem

_OPPOSITES = """
increase decrease; increase reduce; increase decline; rise fall; rise drop; grow shrink;
raise lower; high low; higher lower; highest lowest; more less; more fewer; most least;
before after; first last; former latter; previous next; previously subsequently; north south;
east west; northern southern; eastern western; northeast southwest; northwest southeast; young old;
younger older; youngest oldest; large small; larger smaller; largest smallest; big little;
bigger smaller; biggest smallest; long short; longer shorter; longest shortest; tall short;
open close; opened closed; start end; start stop; start finish; begin end; beginning ending;
left right; up down; upward downward; upper lower; uppermost lowermost; male female; man woman;
men women; boy girl; king queen; prince princess; positive negative; true false; win lose;
won lost; winner loser; victory defeat; buy sell; bought sold; purchase sell; hot cold;
hotter colder; warm cool; warmer cooler; heat cool; freeze melt; early late; earlier later;
earliest latest; always never; often seldom; often rarely; frequent infrequent; frequently rarely;
everyone nobody; everything nothing; same different; similar different; include exclude;
allow prevent; allow forbid; allow prohibit; permit prohibit; permit forbid; require forbid;
require prohibit; enable disable; enable prevent; accept reject; accept refuse; approve reject;
approve disapprove; admit deny; confirm deny; grant deny; maximum minimum; maximize minimize;
majority minority; inside outside; internal external; interior exterior; inner outer;
indoor outdoor; indoors outdoors; above below; front back; front rear; forward backward;
forwards backwards; top bottom; safe dangerous; safe unsafe; possible impossible; able unable;
legal illegal; lawful unlawful; best worst; better worse; good bad; good poor; presence absence;
born died; birth death; husband wife; father mother; son daughter; brother sister; uncle aunt;
nephew niece; parent child; attach remove; attach detach; insert remove; insert eject; add remove;
add subtract; connect disconnect; install uninstall; install remove; load unload; lock unlock;
plug unplug; fasten unfasten; tighten loosen; tight loose; on off; with without; strong weak;
stronger weaker; strengthen weaken; effective ineffective; efficient inefficient; common rare;
common uncommon; public private; active inactive; activate deactivate; direct indirect; fast slow;
faster slower; quick slow; quickly slowly; accelerate decelerate; light dark; lighter darker;
bright dark; brighten darken; brighter darker; brighter dimmer; heavy light; heavier lighter;
wet dry; success failure; succeed fail; successful unsuccessful; agree disagree; support oppose;
gain loss; gain lose; profit loss; new old; newer older; newest oldest; symptomatic asymptomatic;
known unknown; significant insignificant; import export; inhale exhale; arrive depart;
arrival departure; enter exit; enter leave; ascend descend; ascending descending; advance retreat;
attack defend; borrow lend; push pull; give take; send receive; show hide; expand contract;
expand collapse; widen narrow; wide narrow; wider narrower; broad narrow; thick thin; deep shallow;
hard soft; hard easy; difficult easy; simple complex; simple complicated; rich poor; full empty;
severe mild; acute chronic; benign malignant; major minor; senior junior; superior inferior;
manual automatic; manually automatically; permanent temporary; voluntary mandatory;
optional required; optional mandatory; natural artificial; domestic foreign; local remote;
national international; rural urban; urban suburban; horizontal vertical; horizontally vertically;
parallel perpendicular; clockwise counterclockwise; clockwise anticlockwise; anterior posterior;
dorsal ventral; proximal distal; upstream downstream; input output; incoming outgoing;
inbound outbound; online offline; wired wireless; analog digital; odd even; single multiple;
singular plural; single married; alive dead; living dead; healthy sick; guilty innocent; peace war;
ally enemy; friend enemy; employer employee; teacher student; supply demand; income expense;
credit debit; asset liability; cheap expensive; wholesale retail; raw cooked; sweet sour;
fresh stale; ripe unripe; clean dirty; smooth rough; sharp blunt; sharp dull; loud quiet;
noisy quiet; visible invisible; transparent opaque; solid liquid; acidic alkaline;
conductor insulator; ancient modern; day night; morning evening; morning afternoon; summer winter;
sunrise sunset; dawn dusk; near far; nearest farthest; close far; approve veto;
encourage discourage; appear disappear; encrypt decrypt; compress decompress; upload download;
upgrade downgrade; mute unmute; pause resume; subscribe unsubscribe; select deselect;
appreciate depreciate; inflation deflation; surplus deficit; shortage surplus; excess shortage;
overestimate underestimate; overweight underweight; dominant recessive; sensitive resistant;
susceptible resistant; soluble insoluble; reversible irreversible; regular irregular;
formal informal; sufficient insufficient; adequate inadequate; complete incomplete;
correct incorrect; accurate inaccurate; consistent inconsistent; dependent independent;
likely unlikely; usual unusual; reliable unreliable; stable unstable; stable volatile;
necessary unnecessary; available unavailable; compatible incompatible; equal unequal; fair unfair;
happy unhappy; aware unaware; limited unlimited; mature immature; moral immoral; perfect imperfect;
mobile immobile; literate illiterate; vaccinated unvaccinated; infected uninfected;
treated untreated; exposed unexposed; employed unemployed; amateur professional;
conservative liberal; democratic authoritarian; guilty acquitted
"""


def _table() -> dict[str, frozenset[str]]:
    opposites: dict[str, set[str]] = {}
    for pair in _OPPOSITES.split(";"):
        one, other = map(stem, pair.split())
        opposites.setdefault(one, set()).add(other)
        opposites.setdefault(other, set()).add(one)
    return {word: frozenset(others) for word, others in opposites.items()}


OPPOSITE = _table()
"""Stem → the stems of its opposites."""
SPELLED = {stem(word): word for word in reversed(_OPPOSITES.replace(";", " ").split())}
"""The words of the table, by their stems."""
