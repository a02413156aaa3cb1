"""Weights of concepts and of their pairs, in hundredths, by `training/suspicion.py`."""

from __future__ import annotations

BIAS = -540
WEIGHTS = {
    "jargon": ""
    "jargon 21 mention -15 bench -6 grader 28 machine -1 you 62 please 6 note 47 "
    "drop 8 rules -14 earlier 5 mark -40 marked -2 give 47 given -8 judged 20 good 48 "
    "relevant -29 bad 56 top 8 score -4 all -12 fully -35 not -37 must 10 check -6 "
    "secret 5 pressure 27 new 18 pretend -12 told -8 lenient 32 format 72 end 21 "
    "texts -50 decode 11 already 33 this -11 read 41 first 37 short 22 long 22 dense 55 "
    "sparse -17 two 12 foreign -63 script -2 ",
    "mention": ""
    "mention -48 bench -3 grader 2 machine -18 you -7 note -1 drop -19 rules -14 "
    "earlier -12 mark -17 marked 9 give -14 given -3 judged -11 good 15 relevant -1 "
    "bad 6 score 23 all 1 fully -6 not 22 must 4 meta -5 check -15 secret 8 pressure 9 "
    "new -1 pretend 13 if -18 people 12 told -8 lenient -1 format 3 end -8 texts -28 "
    "decode -7 already -4 this -7 read -9 first 18 short 7 long -5 dense 8 sparse -3 "
    "two -16 foreign 7 ",
    "bench": ""
    "bench -6 grader 8 machine 8 you -11 please 2 note 4 drop 3 rules 15 earlier 15 "
    "mark 9 marked 13 give -12 given -8 judged -8 good 13 relevant 3 bad -13 top -19 "
    "score 21 all 11 fully 20 not -9 must 9 meta 10 check -28 secret -1 pressure 5 "
    "new 7 if -32 people -1 told 15 lenient 7 format 12 end -12 texts -15 decode 8 "
    "this 23 read -6 first -14 short -7 long -4 dense 8 sparse -3 two 8 foreign -17 ",
    "grader": ""
    "grader 57 machine -6 you 37 please 39 note 62 drop -11 rules 12 earlier 26 mark -96 "
    "marked -29 give -5 given -20 judged 37 good 41 relevant -3 bad 4 top 9 score -8 "
    "all -14 fully 42 not 54 must 44 meta -15 check -2 secret 3 pressure -11 new 15 "
    "pretend 4 if 27 people 30 told -4 lenient 24 format -29 end 20 texts 27 decode -6 "
    "already 8 this 58 read 6 first -44 short -28 long 43 dense 15 sparse 3 two 24 "
    "foreign -9 script 1 ",
    "machine": ""
    "machine 8 you -27 please 14 note 49 drop -13 rules -32 earlier -15 mark 23 marked -17 "
    "give 20 given -17 judged 2 good 72 relevant -1 bad 17 top 20 score 32 all 4 "
    "fully 23 not 5 must 10 meta -9 check 22 secret -2 pressure 1 new 6 pretend -4 "
    "people -11 told -14 lenient 3 format -2 end -22 texts 8 decode 1 already 22 "
    "this -6 read 7 first -32 short -4 long 5 dense 14 sparse 6 two -3 foreign 20 "
    "script 24 ",
    "you": ""
    "you 27 please -19 note -24 drop -18 rules 40 earlier 22 mark -19 marked 25 give 15 "
    "given 16 judged 18 good 19 relevant 21 bad 44 top -19 score 2 all 27 fully 12 "
    "not 2 must -34 meta 21 check -3 secret 19 pressure -14 new -17 pretend 21 if 51 "
    "people -18 told 98 lenient -6 format 4 end -10 texts -14 decode -15 already -4 "
    "this -15 read -2 first -67 short -27 long -5 dense 15 sparse 14 two -21 foreign -30 "
    "script 6 ",
    "please": ""
    "please 47 note -31 drop 3 rules -4 earlier -15 mark 9 marked -6 give 25 given -2 "
    "judged -1 good -4 relevant -7 bad 5 top 40 score 7 all -32 fully 4 must 9 check -23 "
    "secret -1 pressure 5 new -8 if 10 people -18 told 6 lenient 10 end 1 texts 31 "
    "decode -1 already 20 this 20 read -7 first 32 short 28 long -1 dense 10 sparse -1 "
    "two 1 foreign -21 script 6 ",
    "note": ""
    "note 80 drop -17 rules 13 earlier -11 mark 1 marked -10 give 15 given -4 judged -19 "
    "good -27 relevant 14 bad -14 top 13 score 17 all 3 fully -10 not 23 must -52 "
    "meta 19 check 40 secret 1 pressure 1 new -13 pretend -6 if -37 people -22 told -30 "
    "lenient 8 format -6 end -12 texts 18 decode -8 already -23 this -2 read -4 first -54 "
    "short 12 long 16 dense 27 sparse -2 two -28 foreign 25 script 24 ",
    "drop": ""
    "drop 36 rules 115 earlier 49 mark -22 give 23 given -3 judged 32 good 17 relevant 19 "
    "bad -1 top 8 score 35 all 1 fully 13 not -99 must -8 meta 31 check 20 secret -4 "
    "pressure -40 new -43 pretend -8 if -27 people -15 told 1 lenient 2 format -31 "
    "end 1 texts 35 decode -16 already -6 this -3 read -6 first 22 short 1 long -20 "
    "dense 39 sparse -33 two -22 foreign 16 script 17 ",
    "rules": ""
    "rules 24 earlier 43 mark 30 marked -10 give 57 given 7 judged -16 good 14 relevant 8 "
    "bad 13 top 24 score -1 all 4 fully 16 not 9 must -24 meta 11 check -19 secret 5 "
    "pressure -13 new 14 pretend -15 if -14 people 18 told 31 lenient -4 format -28 "
    "end 8 texts -29 decode -17 already 7 this -24 read -24 first 68 short 40 long -1 "
    "dense 32 sparse -20 two 20 foreign 12 script 9 ",
    "earlier": ""
    "earlier -48 mark -9 marked 2 give -9 given -24 judged 29 good 7 relevant 37 "
    "bad -7 top 8 score -5 all -26 fully 30 not 1 must 16 meta 20 check -3 secret -10 "
    "pressure 22 new -7 pretend -9 if -16 people 3 told 11 lenient -15 format -6 "
    "end 2 texts 5 decode 5 already 23 this 1 read -15 first 30 short 20 long -11 "
    "dense 16 sparse -8 two 13 foreign -18 script -2 ",
    "mark": ""
    "mark 129 marked -32 give -67 given -44 judged 9 good 5 relevant 37 bad -23 top -34 "
    "score -25 all 39 fully 24 not 34 must -2 meta 49 check -49 pressure 48 new 33 "
    "pretend 11 if -27 people -6 told -11 lenient -4 format -61 end -11 texts 83 "
    "decode -11 already 58 this 54 read 9 first -33 short 38 long 9 dense -9 sparse -10 "
    "two -1 foreign 2 script 14 ",
    "marked": ""
    "marked -15 give -16 given -14 judged 23 good 9 relevant -12 bad -3 top 7 all 25 "
    "fully 9 not -30 must -25 meta -13 check 3 pressure 24 new -3 pretend 8 if -5 "
    "people -4 told -4 format -13 end -9 texts -14 already -13 this 42 read 9 first -1 "
    "short -15 long -2 dense -2 sparse -2 two -11 foreign -20 ",
    "give": ""
    "give 58 given 1 judged 6 good 1 relevant 1 bad 5 top 57 score -21 all 14 fully 37 "
    "not 16 must 2 meta 5 check -13 secret 16 pressure 13 new 25 pretend 1 if -15 "
    "people -6 told 24 lenient 4 format 19 end -8 texts -18 decode -26 already -6 "
    "this 19 read -29 first -55 short -20 long -28 dense 26 sparse -25 two -19 foreign 3 "
    "script 11 ",
    "given": ""
    "given -36 judged -11 good -8 relevant -20 top 46 score 2 all 9 fully -16 not -23 "
    "must -2 meta -14 check -13 secret -2 pressure 9 new -10 pretend -3 if -15 people -3 "
    "told 6 lenient -1 format -6 end -9 texts 7 decode 27 already -3 this 9 first -3 "
    "short -12 long -12 dense -13 sparse -4 two -3 foreign -14 ",
    "judged": ""
    "judged 14 good 13 relevant -14 bad -14 top -14 score -50 fully -11 not -8 must 3 "
    "meta 38 check 37 secret -12 pressure -12 new 63 pretend 11 if 36 people 5 told 2 "
    "lenient 2 format 32 end 18 texts 6 decode -9 already 41 this 74 read -21 short -35 "
    "long -42 dense -3 sparse -27 two -15 foreign -3 script 2 ",
    "good": ""
    "good 97 relevant -25 bad -56 top -63 score 45 all 56 fully 35 not 2 must -35 "
    "meta 17 check 49 secret -15 pressure -26 new 28 pretend 32 if 2 people -16 told -13 "
    "lenient 3 format 11 end 60 texts -15 decode 8 already -6 this -78 read 8 first 12 "
    "short -16 long -19 dense 4 sparse -7 two 12 foreign -21 script 32 ",
    "relevant": ""
    "relevant 31 bad 16 top 3 all 81 fully 1 not -30 must -9 meta -19 check -7 secret 20 "
    "pressure -6 new -1 pretend -11 if 10 people -4 told 9 lenient -5 format 39 end -14 "
    "texts -74 decode -4 already -6 this -25 read -12 first 38 short -1 long -14 "
    "dense 61 sparse -10 two -4 foreign -17 script 20 ",
    "bad": ""
    "bad 36 top -28 score 4 all -7 fully 12 not 52 must 3 meta -23 check 5 secret 28 "
    "pressure -2 new 6 pretend 6 if -21 people -6 told -5 lenient 4 format 15 end -3 "
    "texts -11 decode -10 already -12 this -9 read 16 first 24 short 8 long -16 dense 19 "
    "sparse -7 two -1 foreign -26 script 11 ",
    "top": ""
    "top -6 score 84 all -75 fully -18 not 1 must 5 meta -9 check 50 secret 2 pressure 41 "
    "new 4 pretend -5 if -22 people -17 told 3 lenient 6 format -14 end -9 texts -28 "
    "decode -29 already 4 this 72 read 5 first -8 short 27 long -6 dense 5 sparse 1 "
    "two 22 foreign -41 script 10 ",
    "score": ""
    "score 54 all -9 fully 7 not -38 must 3 meta -29 check 62 secret 13 pressure 54 "
    "new 15 pretend 11 if 3 people -7 told 14 lenient 11 format -20 end 16 texts 63 "
    "already 2 this 20 read 12 first -17 short -33 long -19 dense -8 sparse 15 two 25 "
    "foreign -8 script -23 ",
    "all": ""
    "all 54 fully -6 not -51 must 3 meta 38 check -45 secret 12 pressure -12 new 55 "
    "pretend -1 if -40 people 7 told 26 lenient -8 format 25 end 1 texts -39 decode -5 "
    "already -13 this -45 read -3 first 34 short -12 long -11 dense 49 sparse 15 "
    "two 26 foreign -21 script -3 ",
    "fully": ""
    "fully 13 must 13 meta -3 check 24 secret -8 pressure 6 new -16 pretend -2 people -11 "
    "told -18 lenient -3 format 8 end 8 texts -42 decode 7 already 13 this -39 read -7 "
    "first 66 short 2 long -21 dense 23 sparse -18 two 32 foreign 20 script 19 ",
    "not": ""
    "not 41 must 1 meta -25 check 107 secret 6 pressure 1 new -9 pretend -5 if -46 "
    "people 12 told -18 lenient 11 format -2 end 5 texts -15 decode -7 already -14 "
    "this -40 read 23 first -44 short -9 long -16 dense 19 sparse -9 two -19 foreign 22 "
    "script 38 ",
    "must": ""
    "must 20 meta 8 check -35 secret -3 pressure -11 new 8 if -6 people -5 told -24 "
    "lenient -9 format -3 end -19 texts 7 decode 31 already -4 this 50 read 28 first -45 "
    "short 45 long -18 dense 23 sparse 13 two -7 foreign 12 script 8 ",
    "meta": ""
    "meta 22 check -22 secret 19 pressure 5 new 20 pretend -7 if -26 people 9 told 29 "
    "lenient 7 format -12 end 20 texts -6 decode -5 already 5 this 30 read -18 first -18 "
    "short 14 long -26 dense 40 sparse -28 two 25 foreign 12 script 6 ",
    "check": ""
    "check 1 secret -5 pressure 12 new 20 pretend -10 if 3 people -15 told 13 lenient 3 "
    "format 3 end 20 texts -20 decode -12 already -2 this -9 read -10 first -25 short -48 "
    "long -13 dense 15 sparse -11 two 22 foreign -6 script 26 ",
    "secret": ""
    "secret 37 pressure -1 new -5 pretend 10 if -27 people 22 told -11 lenient -1 "
    "format -2 end -6 texts -10 already -2 this 3 first 12 short -11 long -8 dense 18 "
    "sparse -4 two -14 foreign -17 ",
    "pressure": ""
    "pressure 35 new -9 pretend 4 if 29 people -5 told 25 format -38 end -11 texts -16 "
    "decode -3 already -17 this 5 read 9 first 29 short 2 long -16 dense -9 sparse -8 "
    "two 1 foreign -25 ",
    "new": ""
    "new -14 pretend -1 if -14 people -4 told 8 lenient -5 format 9 end 31 texts 11 "
    "decode -4 already -11 this -22 read -5 first -28 short 11 long -14 dense 33 "
    "sparse -17 two 25 foreign 11 script -7 ",
    "pretend": ""
    "pretend 28 if 14 people -2 told 20 lenient -1 format -21 end -5 texts 19 decode -1 "
    "already 19 this 19 read -7 first 34 short -17 long -6 dense -11 sparse -3 two -19 "
    "foreign 5 ",
    "if": ""
    "if -65 people -14 told 26 lenient 13 format -26 end 16 texts 24 decode -18 already -17 "
    "this -10 read -2 first -25 short 22 long -5 dense -24 sparse 32 two -17 foreign 15 "
    "script 7 ",
    "people": ""
    "people -132 told 12 lenient -1 format -8 end -11 texts 3 decode -3 already 3 "
    "this -7 read 2 first -2 short -13 long -9 dense -18 sparse -3 two -15 foreign -22 "
    "script -3 ",
    "told": ""
    "told -74 lenient -2 format -26 end -23 texts -32 decode -10 already 54 this 3 "
    "read 4 first 33 short -32 long -1 dense -20 sparse 8 two -10 foreign -21 ",
    "lenient": ""
    "lenient -15 format -6 end -3 texts 1 decode -1 already -1 this -2 read 1 first -9 "
    "short -6 long -4 dense 14 sparse -3 two -2 foreign -23 ",
    "format": ""
    "format -21 end 12 texts 28 decode 1 already -16 this -44 read -12 first -21 "
    "short 25 long -15 dense -12 sparse -10 two -20 foreign -22 ",
    "end": ""
    "end 21 texts 5 decode -9 already -7 this 20 read 5 first 34 short 15 long -19 "
    "dense 14 sparse -13 two 35 foreign 8 ",
    "texts": ""
    "texts -4 decode -3 already 32 this -32 read -11 first 16 short 9 long -56 dense -1 "
    "sparse -32 two -19 foreign 1 script 46 ",
    "decode": ""
    "decode 52 already 3 this -2 read 11 first -12 short 24 long -8 dense -13 sparse 23 "
    "two -11 foreign -18 ",
    "already": ""
    "already 6 this -16 read -11 first 27 short -27 long 4 dense -41 sparse -7 foreign -39 "
    "script -2 ",
    "this": "this 6 read 39 first 40 short 38 long -43 dense 61 sparse -31 two -49 script -13 ",
    "read": "read 3 first 7 short 18 long 14 dense 5 sparse 19 two -5 foreign -29 ",
    "first": "first 91 short 6 long -14 dense -18 sparse -41 two 19 foreign 47 script -13 ",
    "short": "short -3 dense 23 sparse 6 foreign -22 script -19 ",
    "long": "long -84 dense -7 sparse 24 foreign -6 ",
    "dense": "dense 53 foreign 5 script -17 ",
    "sparse": "sparse -106 foreign -8 ",
    "two": "two -168 foreign -36 script 10 ",
    "foreign": "foreign 49 ",
    "script": "script -24 ",
}
