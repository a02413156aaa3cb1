"""Weights of concepts and of their pairs, in hundredths, by `training/suspicion.py`."""

from __future__ import annotations

BIAS = -829
WEIGHTS = {
    "device": ""
    "device -215 jargon -35 mention -1 bench -6 grader 3 machine -12 you -24 please -11 "
    "note -13 drop -30 rules -20 earlier -8 mark 6 give -16 given -1 judged -15 good -25 "
    "relevant -2 bad -5 top -1 score -9 all -8 fully -7 not -15 must -7 meta -12 check -9 "
    "pressure -6 new -24 pretend -1 if -6 people -4 told 8 format -21 end -4 texts -5 decode -2 "
    "already 6 this -31 read -1 fine -6 number -4 better -16 rate -8 deem 14 pass -2 write -16 "
    "software -5 first -20 short -13 long -11 known -44 new-words -9 mostly-new -1 two -15 "
    "foreign -2 ",
    "jargon": ""
    "jargon 132 mention -4 bench 2 grader 16 machine -1 you 80 please 3 note 47 drop 14 rules 5 "
    "earlier -11 mark -19 marked -15 give 44 given -11 judged 4 good 52 relevant -102 bad -7 "
    "top -28 score -27 all -22 fully -29 not -34 must 29 meta 1 check -46 secret 9 pressure 19 "
    "new 53 pretend -3 if -8 people 7 told 32 lenient 34 format 30 texts -25 decode 50 "
    "already 12 this -34 read 57 fine 45 number 30 better 49 rate -24 deem 1 pass 6 write 70 "
    "software 30 first 17 short 45 long -9 known 7 new-words 38 mostly-new -2 two -18 "
    "foreign -36 script -26 ",
    "mention": ""
    "mention -53 bench 3 grader 13 machine -21 you -11 please -3 note 17 drop -10 rules -35 "
    "earlier 9 mark -2 marked 5 give 16 given 7 judged -14 good 8 relevant 19 bad 22 top 11 "
    "score 24 all -9 fully -15 not 55 must 16 meta -21 check -16 secret 8 pressure 10 new 21 "
    "pretend 5 if -11 people 9 told -23 lenient -1 format -9 end -11 texts -21 decode -7 "
    "already -5 this -7 read -18 fine -7 number 6 better -30 rate 8 pass -9 write -21 "
    "software -10 first 29 short -4 long 1 known -16 new-words -5 mostly-new -9 two -20 "
    "foreign 38 ",
    "bench": ""
    "bench -102 grader -21 machine -3 you 6 please 4 drop -8 rules -21 mark 9 marked 10 "
    "given -11 judged 33 good -3 relevant -7 bad -16 top -8 score 15 all -5 fully 3 not -19 "
    "must -4 meta -10 check -49 secret -4 pressure -3 new -16 pretend -3 if -16 people 4 "
    "told -7 lenient -2 format -15 end -3 texts 17 decode -3 already -7 this 34 read -5 fine 16 "
    "number 2 better 8 rate 15 deem -6 pass -16 write -2 software -2 first -22 short -29 "
    "long -9 known 4 new-words -12 mostly-new -4 two -9 ",
    "grader": ""
    "grader 51 machine -24 you 5 please 38 note 81 drop -8 rules 7 earlier -1 mark -78 "
    "marked -32 give -1 given -25 judged -57 good 21 relevant 30 bad 37 top 31 score -17 all 27 "
    "fully 40 not 73 must 40 meta -8 check -17 secret -28 new 41 pretend 16 if 20 people 24 "
    "told -18 lenient 54 format -38 end -11 texts 19 decode -8 already 33 this 46 read -7 "
    "fine 14 number -1 better 6 rate -26 deem -42 pass 8 write 14 software 5 first 12 short 16 "
    "long 35 known -38 new-words 27 mostly-new 13 two -18 foreign -21 script -16 ",
    "machine": ""
    "machine 41 you -1 please -5 note 62 drop -24 rules -36 earlier -27 mark 24 marked -33 "
    "give 53 given -17 judged -16 good 91 relevant -3 bad 7 top 22 score 23 all 33 fully 11 "
    "not 8 must -9 meta -14 check -25 secret 4 pressure 19 new -7 pretend -4 if 33 people -2 "
    "told 25 lenient 4 format -1 end 27 texts 18 decode -1 already 26 this 44 read -33 fine 31 "
    "number -21 better -34 deem -9 pass 28 write 25 software 8 first -44 short -29 long 4 "
    "known -14 new-words -11 mostly-new 17 two -38 foreign 16 script -7 ",
    "you": ""
    "you 39 please -55 note -29 drop 7 rules 75 earlier 22 mark -53 marked 41 give 35 given 11 "
    "judged 36 good 20 relevant 12 bad 24 top -20 score 33 all 16 fully -12 not 39 must -28 "
    "meta 27 check 20 secret 4 pressure -16 new 35 pretend 38 if 46 people -8 told 61 "
    "lenient -3 format 27 end -13 texts 12 decode -10 already -10 this -40 read -8 fine -14 "
    "number -28 better 81 rate -19 deem -19 pass -42 write -1 software -27 first -17 short -1 "
    "long 15 known 4 new-words 21 mostly-new -27 two -17 foreign -62 script 15 ",
    "please": ""
    "please 62 note -31 drop -6 rules -5 earlier 1 mark 24 marked -12 give 5 given 6 judged 14 "
    "good -25 relevant -19 bad 29 top 25 score 14 all -33 fully 15 not 22 must -6 meta 1 "
    "check 6 secret -9 pressure 14 new -1 pretend 6 if 17 people -27 told -17 lenient 16 "
    "format 10 end -13 texts -13 already 1 read -11 fine -3 number 50 better 47 rate 15 deem -8 "
    "pass 5 write -6 software -5 first 35 short 4 long 11 known 24 new-words 1 mostly-new -1 "
    "two 3 foreign -23 script 3 ",
    "note": ""
    "note 98 drop -61 rules -19 mark -8 marked 3 give -31 given -14 judged 6 good 36 "
    "relevant 22 bad 49 top 27 score -6 all -5 fully -9 not -10 must -37 meta 64 check 53 "
    "secret -20 pressure 2 new -2 pretend -11 if -24 people -8 told 13 lenient 15 format 8 "
    "end -22 texts -7 decode -15 already -34 this 2 read -33 fine -21 number -20 better 7 "
    "rate -28 deem -4 pass 12 write -13 software 42 first -14 short 11 long 20 new-words 38 "
    "mostly-new -13 two -17 foreign 42 script 8 ",
    "drop": ""
    "drop 58 rules 146 earlier 28 mark -14 marked 12 give 13 given -7 judged 42 good 43 "
    "relevant 15 bad 18 top 42 score 20 all 25 fully 6 not -97 must -17 meta 3 check 67 "
    "secret 4 pressure -45 new -65 if 13 told 43 lenient -5 format -44 end 4 texts 5 decode 3 "
    "already -26 this -43 read -5 fine 5 number -16 better 1 rate 2 deem -7 pass 21 write -2 "
    "software 8 first 25 short -3 long -27 known 29 new-words 8 mostly-new -11 two 39 "
    "foreign -15 script 61 ",
    "rules": ""
    "rules -3 earlier 54 mark -13 marked -5 give -7 given 15 judged 9 good -18 relevant 11 "
    "bad -23 top 45 score 21 all 36 fully 10 not -34 must -21 meta -16 check -22 pressure -16 "
    "new 31 pretend -50 if 9 people 5 told 32 lenient -26 format 27 end 3 texts -42 decode 14 "
    "already -19 this 4 read 8 fine 34 number -7 better 3 rate 19 deem 12 pass 27 write -17 "
    "software 38 first 48 short 72 long -17 known 18 new-words 3 mostly-new -18 two 7 "
    "foreign 20 script 10 ",
    "earlier": ""
    "earlier -44 mark 11 marked -10 give 9 given -30 judged -4 good -26 relevant 27 bad 2 "
    "top 20 score -17 all -28 fully -7 not -11 must 9 meta 59 check -6 secret 3 pressure -2 "
    "new -10 pretend -12 if -8 people 7 told 24 lenient -5 format 12 end -17 texts -8 decode 40 "
    "already 2 this -13 read -5 fine -4 number -19 better 44 rate 13 deem 8 pass -44 write -2 "
    "software 5 first 49 short 37 long 14 known 18 new-words -15 mostly-new -14 two -22 "
    "foreign -39 script -21 ",
    "mark": ""
    "mark 63 marked -22 give -41 given -31 judged 10 good 29 relevant 41 bad -5 top -34 "
    "score -34 all -6 fully -9 not 23 must -25 meta 46 check -67 secret 12 pressure 19 new 26 "
    "pretend 32 if -14 told -2 lenient 20 format -40 end -3 texts 49 decode -5 already 34 "
    "this 10 read -10 fine -13 number -25 better -37 rate -54 deem 72 pass 3 write -38 "
    "software 11 first -18 short -4 long 3 known 7 new-words 25 mostly-new 17 two -2 foreign -1 "
    "script 31 ",
    "marked": ""
    "marked -40 give -2 given -18 judged 26 good 6 bad 27 top 17 score 4 all 4 fully 30 not -34 "
    "must 6 meta -35 check -14 secret -9 pressure 22 new -8 pretend -2 if 6 people -15 told 2 "
    "format -26 end -14 texts -2 decode 15 already -10 this 31 read 34 fine 7 number 7 "
    "better 10 rate -11 deem -11 pass -19 write 7 software 1 first -39 short -24 long -12 "
    "known -5 new-words -13 mostly-new -8 two -12 foreign -1 ",
    "give": ""
    "give 115 given 12 judged -21 good 19 relevant -15 bad 4 top 52 score -78 all -5 fully 34 "
    "not 19 must -7 meta -13 check -34 secret 22 pressure 35 new 17 pretend -10 if -25 "
    "people -1 told 11 lenient -18 format 8 end 11 texts -41 decode -23 already 1 this 41 "
    "read -17 fine 46 number 87 better -23 rate -8 deem -30 pass 10 write -3 software -28 "
    "first -24 short -36 long 20 known -8 new-words -7 mostly-new -9 two -26 foreign -20 "
    "script -28 ",
    "given": ""
    "given -38 judged -42 good -43 relevant -22 bad -6 top 4 all 6 fully -16 not -17 must -14 "
    "meta -8 check -39 secret -15 pressure 14 new 7 pretend 16 if -8 people 8 told 33 lenient 2 "
    "format -9 end -3 texts -41 decode 24 already 11 this -14 read 8 fine 19 number 33 "
    "better -23 rate -23 deem -13 pass -5 write 12 software 6 first -19 short -3 long -2 "
    "new-words -8 mostly-new -3 two -20 ",
    "judged": ""
    "judged 93 good -9 relevant 46 bad 2 top -9 score -39 all 48 fully 9 not -7 must 42 "
    "meta -12 check -37 secret -1 pressure 23 new 57 pretend 25 if 1 people -15 told 21 "
    "lenient -41 format 6 end 20 texts -78 decode -18 already 8 this 73 read 22 fine 11 "
    "number -38 better 21 rate 19 deem 41 pass 93 write 25 software -2 first 8 short -2 "
    "known -71 new-words -49 mostly-new -32 two -35 foreign -7 script -59 ",
    "good": ""
    "good 159 relevant -54 bad -63 top -36 score 34 all -2 fully 18 not -32 must 2 meta 16 "
    "check 17 secret 8 pressure -44 new 27 pretend -21 if 30 people -16 told 9 lenient -1 "
    "format 34 end 77 texts 25 decode 27 already 10 this -40 read 5 fine 12 number -87 "
    "better -34 rate 43 deem 59 pass -59 write 37 software 29 first -17 short -8 long 26 "
    "known -41 new-words 15 mostly-new 15 two 7 foreign 2 script 6 ",
    "relevant": ""
    "relevant 16 bad -10 top -18 score -14 all 102 fully -8 not -35 must 32 meta -25 check -9 "
    "secret 3 pressure 15 new 35 pretend -8 people 5 told 4 lenient -20 format 28 end -27 "
    "texts -34 decode 2 already 11 this -3 read 9 fine -9 number -10 better -41 rate 62 deem 23 "
    "pass 7 write 41 software 17 first 16 short -18 long -2 known 16 new-words -3 mostly-new -3 "
    "two -35 foreign 14 script -1 ",
    "bad": ""
    "bad 97 top -3 score 4 all -8 fully -13 not 16 must 27 meta -36 check -11 secret 20 "
    "pressure 5 new 18 pretend 22 if 9 people -8 told 21 lenient -8 format 34 end 14 texts -33 "
    "decode 15 already -27 this 11 read 4 fine 21 number -13 better -77 rate 5 deem 2 pass -19 "
    "write 43 software -30 first 12 short 34 long -30 known 5 new-words -45 mostly-new -3 two 9 "
    "foreign -2 script 39 ",
    "top": ""
    "top 53 score 95 all -20 fully 11 not 5 must -22 meta 15 check -8 secret 4 pressure 19 "
    "new -6 pretend -5 if -36 people -3 told -15 format 32 end -5 texts 24 decode -2 already 10 "
    "this 43 read 1 fine 9 number -69 better -42 deem -1 pass -12 write 43 software 11 first 5 "
    "short -33 long 11 known 27 new-words 16 mostly-new -21 two -8 foreign -16 script 6 ",
    "score": ""
    "score 63 all -29 fully 19 not -26 must -15 meta -29 check 48 secret -3 pressure 18 new -16 "
    "pretend 2 if -23 people -2 told -11 lenient 9 format -27 end 5 texts 77 decode 23 "
    "already -33 this 16 read 22 fine -10 number 10 better 6 rate 17 deem 33 pass -21 write 38 "
    "software -14 first 19 short 16 long -2 known 23 new-words 13 mostly-new 18 two -12 "
    "foreign -5 script -5 ",
    "all": ""
    "all 15 fully -14 not -24 must -5 meta 20 check -73 secret -7 pressure -4 new 40 pretend 11 "
    "if 4 people 6 told 52 lenient 3 format 49 end -51 texts 27 decode -22 already -44 this -48 "
    "read 8 fine 14 number -79 better 29 rate 13 deem 29 pass 12 write 59 software -4 first 41 "
    "short 28 long -10 known 40 new-words -12 two -41 foreign -38 script -6 ",
    "fully": ""
    "fully 39 not -1 must -9 meta -12 check 39 secret 12 pressure 9 new -14 pretend -8 if -55 "
    "people -6 told -14 lenient -1 end 6 texts -37 decode -1 already 16 this -38 read 15 "
    "fine 22 number 15 rate -24 deem -12 pass 10 write -13 software -11 first 57 short 29 "
    "long 6 known 18 new-words -15 mostly-new -8 two -10 foreign 16 script 31 ",
    "not": ""
    "not 59 must 13 meta 11 check 101 secret 23 pressure 23 new 28 pretend -11 if -32 people 31 "
    "told -5 lenient 3 format 3 end 25 texts 30 decode 1 already 26 this -61 read 6 fine 4 "
    "number -40 better -12 rate 29 deem 5 pass 6 write -10 software -14 first -8 short -44 "
    "long -21 known 28 new-words 27 mostly-new -31 two -47 foreign 75 script 75 ",
    "must": ""
    "must -28 meta 6 check -34 secret -17 pressure -14 new -36 pretend 10 if -26 told -35 "
    "lenient -14 format 27 end -16 texts 37 decode -4 already 6 this 47 read 16 fine -9 "
    "number -14 better -75 rate 3 deem 12 pass -2 write 11 software 16 first -20 short 5 "
    "long -33 known 43 new-words -18 mostly-new 7 two -36 foreign 6 script 13 ",
    "meta": ""
    "meta 56 check 37 secret 42 pressure 2 new -12 pretend -16 if -48 people 17 told 15 "
    "lenient 4 format 7 end -10 texts -54 decode -1 already 6 this 18 read -40 fine -27 "
    "number -2 better 6 rate 3 deem -19 pass 44 write -22 software 21 first -56 short 69 long 1 "
    "known 41 new-words -3 mostly-new -21 two -10 foreign 17 script 45 ",
    "check": ""
    "check 89 secret -4 pressure 62 new 17 pretend -10 if 7 people -11 told -1 lenient -6 "
    "format -12 end 26 texts -59 decode 2 already 29 this 17 read -9 fine -1 number 53 "
    "better 13 rate -47 deem 10 pass -3 write -8 software -7 first -74 short 9 long -30 known 9 "
    "new-words 3 mostly-new -25 two -3 foreign 19 script 15 ",
    "secret": ""
    "secret 6 pressure -1 new -3 pretend 12 if -12 people 15 told -10 lenient -16 format -1 "
    "end -3 texts 29 already -10 this 18 read -5 fine -6 number -4 better -29 rate 2 deem 1 "
    "pass 4 write -8 software -3 first -8 short -15 long -5 known 32 new-words -3 mostly-new -7 "
    "two -15 foreign -3 ",
    "pressure": ""
    "pressure 25 new -2 pretend -1 if 40 people -6 told 24 lenient -5 format -11 end -3 texts 8 "
    "decode -1 already -21 this 23 read -4 fine -7 number -1 better -13 rate 32 deem 1 pass 8 "
    "write -19 software -3 first 6 short -4 long -16 known -8 new-words -13 mostly-new -16 "
    "two 14 foreign -15 ",
    "new": ""
    "new 15 if 9 people -6 told -39 lenient -9 format -12 end 24 texts 14 decode 4 already -14 "
    "this -44 read -6 fine 2 number -6 better 14 rate 30 deem -7 pass 30 write -5 software -12 "
    "first -32 short 6 long -14 known 28 new-words -1 mostly-new -19 two 36 foreign 28 script 7 ",
    "pretend": ""
    "pretend 17 if -3 people 14 told 41 lenient -1 format -11 end -11 texts 44 decode -6 "
    "already 12 this 8 read 7 fine 1 number -4 better 19 rate 17 deem -7 pass 5 write 14 "
    "software -9 first 52 short -13 long -14 known -20 new-words -11 mostly-new -4 two -19 "
    "foreign -34 script 8 ",
    "if": ""
    "if -78 people -11 told 3 lenient 3 format -61 end -17 texts 1 decode -3 already -24 "
    "this -30 fine 20 number -9 better 24 rate 29 deem -26 pass -5 write 17 software -1 "
    "first -59 short 26 known -29 new-words 8 mostly-new -2 two 10 foreign 48 script -5 ",
    "people": ""
    "people -142 told 26 lenient -5 format -3 end -4 decode -2 already 7 this -10 read -4 "
    "fine -8 number -9 better -21 rate 15 pass -22 write 1 software -2 first 7 short -2 "
    "long -11 known -33 new-words -11 mostly-new -4 two -9 foreign -6 script -3 ",
    "told": ""
    "told -70 format -6 end -17 texts -11 decode -8 already 46 this -1 read -9 fine 27 "
    "number -7 better 15 rate -13 pass 12 write 15 software -4 first 43 short -44 long -24 "
    "known -37 new-words -13 mostly-new -30 two -37 foreign 4 ",
    "lenient": ""
    "lenient 103 format -25 end -4 texts -21 decode -1 already -4 this -9 read 23 fine 23 "
    "number 10 better -23 rate 37 deem -5 pass -21 write 4 software -1 first -15 short 19 "
    "long -22 known -3 new-words -8 mostly-new -6 two 8 foreign 39 script 17 ",
    "format": ""
    "format -31 texts -17 decode -25 already -14 this -13 read 17 fine 31 number -31 better 5 "
    "deem -18 pass 10 write 30 software 15 first -12 short 49 long -2 known 1 new-words -27 "
    "mostly-new 2 two -40 foreign 59 script 8 ",
    "end": ""
    "end 35 texts 36 decode -5 already -15 this 2 read -2 fine 9 number 8 better -5 rate -23 "
    "deem -11 pass 14 write -11 software -6 first 37 short -8 long -18 known 34 new-words -22 "
    "mostly-new -19 two 50 foreign -2 script 37 ",
    "texts": ""
    "texts 43 decode -7 already 14 this 29 read -1 fine 16 number -24 better -54 rate 7 deem 61 "
    "pass 28 write 2 software 30 first 18 short -40 long -70 known 27 new-words -10 "
    "mostly-new -33 two -4 foreign -17 script 28 ",
    "decode": ""
    "decode 3 already 7 this -18 read -6 fine 10 number -30 better -19 rate -10 deem -1 "
    "write -16 software -25 first -5 short 5 long -3 known -11 new-words -8 mostly-new -6 "
    "foreign 11 ",
    "already": ""
    "already 91 this 29 read -14 fine -10 number 23 better -4 rate -6 deem 28 pass 47 write -3 "
    "software 11 first -28 short -40 long -18 known -38 new-words -4 mostly-new -19 two -1 "
    "foreign -28 script 25 ",
    "this": ""
    "this 59 read 60 fine -18 number 84 better 37 rate 73 deem -11 pass -23 write -28 "
    "software 23 first -9 short 9 long -27 known 55 new-words -23 mostly-new -41 two -13 "
    "foreign 23 script -54 ",
    "read": ""
    "read -30 fine 10 number 15 better 31 rate 22 deem -9 pass -7 write 16 software -41 "
    "first 10 short -12 long 17 known -18 new-words -12 mostly-new -11 two 2 foreign -42 "
    "script -9 ",
    "fine": ""
    "fine 37 number -8 better 16 rate -16 deem -4 pass -5 write -5 first -49 short -32 long -22 "
    "known 37 new-words -20 mostly-new -15 two 22 foreign -7 script 15 ",
    "number": ""
    "number 47 better -4 rate 21 pass -3 write -13 software 27 first -7 short 9 long -19 "
    "known 17 new-words -21 mostly-new -29 two -9 script -32 ",
    "better": ""
    "better -48 rate -41 deem -14 pass -50 write -30 software -16 first -4 short -2 long -19 "
    "known 24 new-words 9 mostly-new -33 two -29 foreign -21 ",
    "rate": ""
    "rate 72 deem -21 pass -31 write -21 software 4 first -17 short 38 long 16 known -26 "
    "new-words 10 mostly-new -15 two 12 foreign -8 script -11 ",
    "deem": ""
    "deem 24 pass -3 write -22 software -3 first 12 short 51 long 1 known -3 new-words 14 "
    "mostly-new 20 two -24 foreign 22 script 12 ",
    "pass": ""
    "pass 67 write -21 software 9 first -29 short 20 long -16 known 44 new-words -14 "
    "mostly-new -16 two 25 foreign 32 script 37 ",
    "write": ""
    "write -84 software 13 first -26 short -37 long 23 known 42 new-words -36 mostly-new -15 "
    "two -14 foreign 28 script 31 ",
    "software": ""
    "software 0 first -23 short 27 long -3 known 15 new-words -14 mostly-new -10 two 12 "
    "foreign 6 script -19 ",
    "first": ""
    "first 61 short 66 long -8 known 1 new-words -12 mostly-new 7 two 8 foreign 18 script 24 ",
    "short": ""
    "short -37 known -20 new-words 9 mostly-new 26 foreign -11 script -12 ",
    "long": ""
    "long -100 known -10 new-words 5 mostly-new -39 foreign 22 script 28 ",
    "known": ""
    "known 150 two 78 foreign -47 script -12 ",
    "new-words": ""
    "new-words -183 two -30 foreign 35 ",
    "mostly-new": ""
    "mostly-new -174 two -34 script 25 ",
    "two": ""
    "two -40 foreign 10 script 47 ",
    "foreign": ""
    "foreign 199 ",
    "script": ""
    "script 164 ",
}
