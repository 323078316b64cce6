"""Names of measures as people and other tools write them: ours, those of trec_eval, ir_measures, ranx, BEIR and MTEB.

`read` is for what a person types. Files of our own name measures in one way alone, that of `metrics.parse`. A name is
taken only where the measure is the same; a measure of others that is not computed here is said to be one, and no
other is suggested in its place: that would be another number.
"""

from __future__ import annotations

import difflib
import re
from functools import lru_cache

from eval_core.errors import Misuse, did_you_mean
from eval_core.scoring.metrics import DIGITS, FAMILIES, Measure, fits, known

#: Other names of our measures, in small letters, with _ for -; a gain where the name says one.
ALIASES: dict[str, str] = {
    "p": "precision",
    "r": "recall",
    "r_cap": "recall_cap",
    "r_prec": "rprec",
    "r_precision": "rprec",
    "success": "hit",
    "hit_rate": "hit",
    "hitrate": "hit",
    "hr": "hit",
    "rr": "mrr",
    "recip_rank": "mrr",
    "ap": "map",
    "map_cut": "map",
    "ndcg_cut": "ndcg",
    "ndcg_burges": "ndcg(gain=exp)",
}

#: Measures of others that are not computed here, in small letters, with _ for - and without a number behind.
FOREIGN: dict[str, str] = {
    "trec_eval": "11pt_avg bing bpref g gm_ap gm_bpref gm_map infap iprec_at_recall map_avgjg ndcg_p ndcg_rel "
    "num_nonrel_judged_ret num_q num_rel num_rel_ret num_ret p_avgjg rbp rbp_resid rel_p relative_p relstring rndcg "
    "rprec_mult rprec_mult_avgjg runid runj set_f set_map set_p set_recall set_rel_p set_relative_p unjudged utility "
    "yaap",
    "ir_measures": "accuracy alpha_dcg alpha_ndcg ap_ia bpm compat err err_ia insq inst ipq iprec nerr nerr_ia nrbp "
    "numq numrel numret p_ia rbtd sdcg setap setf setp setr strec",
    # hits counts documents, where hit is 0 or 1.
    "ranx": "dcg dcg_burges f f1 f_measure hits",
    "BEIR and MTEB": "auc hole nauc",
}
_FOREIGN = frozenset(name for names in FOREIGN.values() for name in names.split())

_WRITTEN = re.compile(
    r"(?P<name>[a-z][a-z_-]*?)(?P<before>\([^()]*\))?"
    r"(?:(?:@|_at_|[_.])(?P<k>[1-9][0-9]*))?(?P<after>\([^()]*\))?",
    re.IGNORECASE,
)
_OPTION = re.compile(r"""(?P<key>rel|gain|dcg)=(?P<quote>['"]?)(?P<value>[a-z0-9-]+)(?P=quote)""")
#: Of ir_measures' dcg.
_GAINS = {"log2": "lin", "exp-log2": "exp"}


@lru_cache(maxsize=512)
def read(name: str) -> Measure:
    """The measure that a person names, in any of the spellings, with the grade from which documents are relevant.

    Raises:
        Misuse: no such measure, a measure of others, or an option that it does not have.
    """
    measure = _understood(name)
    if measure is None:
        raise unknown(name)
    return measure


def unknown(name: str) -> Misuse:
    """The error of a name that `metrics.parse` does not take: the same measure in our spelling, if it is one."""
    names = known(name)
    listed = f"(known: {', '.join(names)})"
    lower = name.lower().replace("-", "_")
    base = re.split(r"[@(.]", lower)[0]
    if not _FOREIGN.isdisjoint({base, base.rstrip("0123456789_")}):
        return Misuse("measure-unknown", f"{name!r} is a measure that is not computed here  {listed}")
    if (deep := re.fullmatch(r"[a-z_]+@([0-9]+)(\(.*)?", lower)) and len(deep[1]) > DIGITS:
        return Misuse("measure-unknown", f"measure {name!r}: a cut-off has at most {DIGITS} digits")
    if (measure := _understood(name)) is not None:
        hint = f"; did you mean {str(measure)!r}?"
        if measure.rel > 1:
            hint = "; rel= is for the commands score and compare: a set's queries are relevant from grade 1"
    else:
        hint = _nearest(lower, names)
    return Misuse("measure-unknown", f"there is no measure {name!r}{hint}  {listed}")


def _understood(name: str) -> Measure | None:
    match = _WRITTEN.fullmatch(name)
    if match is None or len(match["k"] or "") > DIGITS:
        return None
    written = match["name"].lower().replace("-", "_")
    family, _, exp = ALIASES.get(written, written).partition("(gain=exp")
    gain, rel = "exp" if exp else "lin", 1
    for options in filter(None, (match["before"], match["after"])):
        option = _OPTION.fullmatch(options[1:-1])
        if option is None:
            return None
        if option["key"] == "rel":
            if not re.fullmatch(r"[1-9][0-9]{0,8}", option["value"]):
                return None
            rel = int(option["value"])
        else:
            gain = option["value"] if option["key"] == "gain" else _GAINS.get(option["value"], "")
    measure = Measure(family, int(match["k"]) if match["k"] else None, gain, rel)
    return measure if fits(measure) else None


def _nearest(lower: str, names: list[str]) -> str:
    """A hint at the measure whose name is misspelt or incomplete; none at one that is only spelt alike."""
    match = re.match(r"[a-z_]*[a-z]", lower)
    written = match[0] if match else ""
    written = written.removesuffix("_at")
    family = ALIASES.get(written, written)
    if family not in FAMILIES:
        # Among three letters, another measure is one letter away; letters in another order are a slip.
        swapped = [one for one in FAMILIES if sorted(one) == sorted(family)]
        long = [one for one in FAMILIES if len(one) > 3] if len(family) > 3 else []
        close = swapped or difflib.get_close_matches(family, long, n=1, cutoff=0.85)
        if not close:
            return ""
        family = close[0]
    ours = [one for one in names if re.split(r"[@(]", one)[0] == family]
    return did_you_mean(family + lower[len(written) :], ours) or f"; did you mean {ours[0]!r}?"
