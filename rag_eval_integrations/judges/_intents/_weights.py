"""Weights of concepts and of their pairs, in hundredths, by `training/suspicion.py`."""

from __future__ import annotations

BIAS = -784
WEIGHTS = {
    "device": ""
    "device -215 jargon -36 mention -1 bench -5 grader 3 machine -10 you -25 please -8 note -10 "
    "drop -30 rules -19 earlier -8 mark 5 give -19 given -1 judged -15 good -23 relevant -2 "
    "bad -4 top -1 score -11 all -8 fully -7 not -12 must -7 meta -12 check -10 pressure -6 "
    "new -24 pretend -1 if -6 people -3 told 9 format -21 end -6 texts -5 decode -1 already 11 "
    "this -30 read -1 fine -7 number -5 better -15 rate -11 deem 15 pass -2 write -18 "
    "software -6 first -23 short -13 long -12 known -48 new-words -9 mostly-new -3 two -12 "
    "foreign -2 ",
    "jargon": ""
    "jargon 132 mention 4 bench -3 grader 27 machine -5 you 79 please 14 note 58 drop 7 "
    "rules -3 earlier 1 mark -18 marked -18 give 35 given -28 judged -1 good 59 relevant -94 "
    "top -21 score -31 all -17 fully -28 not -40 must 25 meta 2 check -50 secret 4 pressure 15 "
    "new 47 pretend -13 if -8 people 4 told 34 lenient 34 format 22 end 5 texts -24 decode 51 "
    "already 15 this -26 read 56 fine 41 number 34 better 52 rate -29 deem 4 pass 21 write 81 "
    "software 41 first 25 short 50 long -14 known 7 new-words 22 mostly-new 17 two -23 "
    "foreign -36 script -28 ",
    "mention": ""
    "mention -52 bench 3 grader 28 machine -19 you 10 note 18 drop -12 rules -41 earlier 13 "
    "mark 11 marked 4 give 7 given 7 judged -6 good 9 relevant 13 bad 24 top 13 score 14 "
    "all -16 fully -17 not 53 must 16 meta -27 check -21 secret 6 pressure 8 new 22 pretend 3 "
    "if -9 people 9 told -21 lenient -2 format -11 end -16 texts -6 decode -8 already -2 this 4 "
    "read -20 fine -7 number 4 better -37 rate 19 deem 3 pass -8 write -4 software -13 first 43 "
    "short -8 long 23 known -21 new-words -15 mostly-new 7 two -25 foreign 35 ",
    "bench": ""
    "bench -109 grader -24 machine -6 you 6 please 4 note 1 drop -6 rules -12 earlier 2 mark 7 "
    "marked 11 given -3 judged 27 good -9 relevant -7 bad -14 top -4 score 17 all -12 fully 5 "
    "not -26 must -3 meta -10 check -54 secret -4 pressure 6 new -12 pretend -3 if -12 people 3 "
    "told 4 lenient -2 format -19 end -3 texts 21 decode -3 already -7 this 42 read -8 fine 18 "
    "number 5 better 9 rate 11 deem -11 pass -18 write -4 software -2 first -22 short -31 "
    "long -4 known 8 new-words -17 mostly-new -7 two -13 ",
    "grader": ""
    "grader 41 machine -24 you 10 please 44 note 88 drop -5 rules -3 earlier 7 mark -76 "
    "marked -30 give -13 given -43 judged -62 good 25 relevant 39 bad 45 top 16 score -20 "
    "all 31 fully 31 not 55 must 47 meta 2 check -8 secret -30 pressure 5 new 42 pretend 11 "
    "if 19 people 21 told -25 lenient 60 format -28 end -27 texts 40 decode -8 already 37 "
    "this 43 read -7 fine 3 number -8 better -11 rate -22 deem -42 pass 35 write 23 software 1 "
    "first -1 short 28 long 57 known -31 new-words 13 mostly-new 32 two -21 foreign -27 "
    "script -25 ",
    "machine": ""
    "machine 49 you -1 note 48 drop -6 rules -32 earlier -36 mark 45 marked -34 give 46 "
    "given -14 judged -12 good 84 relevant -3 bad -22 top 8 score 25 all 36 fully 9 not 9 "
    "meta -25 check -22 pressure 13 new -6 pretend -8 if 24 people -8 told 16 lenient 1 "
    "format 7 end 41 texts 28 already 28 this 24 read -28 fine 35 better -58 rate 21 deem -8 "
    "pass 24 write 40 software 28 first -30 short -22 long 18 known -33 new-words -4 "
    "mostly-new 26 two -14 foreign 17 script 20 ",
    "you": ""
    "you 45 please -55 note -29 drop -2 rules 79 earlier 18 mark -47 marked 40 give 35 given -1 "
    "judged 35 good 20 relevant 12 bad 27 top -1 score 26 all 10 fully -16 not 45 must -36 "
    "meta 37 check 10 secret 2 pressure -18 new 35 pretend 37 if 49 people -2 told 58 "
    "lenient -2 format 13 end -12 texts 12 decode -8 already -9 this -33 read -7 fine -32 "
    "number -30 better 86 rate -17 deem -12 pass -43 software -26 first -21 short 3 long 30 "
    "known 1 new-words 16 mostly-new -6 two -24 foreign -57 script 18 ",
    "please": ""
    "please 51 note -23 drop -21 rules -7 earlier -2 mark 20 marked -9 give -6 given 4 "
    "judged 16 good -23 relevant -19 bad 32 top 31 score 14 all -28 fully 14 not 11 must 2 "
    "meta -2 check -3 secret -8 pressure 13 new -4 pretend 9 if 15 people -28 told -7 "
    "lenient 20 format 4 end -9 texts -12 already -3 this 10 read -11 fine -15 number 56 "
    "better 60 rate 15 deem -2 pass -9 write -7 software -10 first 31 short 11 long 18 known 23 "
    "new-words -3 mostly-new -2 two 2 foreign -28 script -4 ",
    "note": ""
    "note 88 drop -65 rules -11 earlier -19 mark -12 marked 1 give -35 given -14 judged 10 "
    "good 37 relevant 28 bad 43 top 27 score -7 all -2 fully -7 not -10 must -41 meta 62 "
    "check 54 secret -17 pressure 5 new -5 pretend -10 if -19 people -11 told 10 lenient 13 "
    "format 1 end -21 texts -13 decode -15 already -34 this -6 read -28 fine -17 number -24 "
    "better 5 rate -32 deem -3 pass 14 write -20 software 41 first -12 short 14 long 9 "
    "new-words 36 mostly-new -15 two -19 foreign 33 script 6 ",
    "drop": ""
    "drop 59 rules 150 earlier 27 mark -27 marked 11 give 9 given -3 judged 47 good 39 "
    "relevant 13 bad 24 top 39 score 26 all 18 fully 8 not -112 must 5 meta 4 check 53 secret 2 "
    "pressure -44 new -64 pretend 1 if 11 people -4 told 52 lenient -4 format -26 end -11 "
    "texts 10 already -21 this -35 read -5 number -18 better 1 rate -4 deem -14 pass 17 "
    "write -9 software 7 first 18 short 4 long -12 known 37 new-words 11 mostly-new -25 two 31 "
    "foreign -7 script 65 ",
    "rules": ""
    "rules -7 earlier 61 mark -13 marked -7 give -12 given 22 judged 11 good -14 relevant 11 "
    "bad -18 top 40 score 27 all 39 fully 5 not -38 must -24 meta -17 check -15 secret -2 "
    "pressure -5 new 39 pretend -53 if 13 people 6 told 38 lenient -29 format 25 end 5 "
    "texts -44 decode 16 already -19 read 12 fine 35 number -4 better 15 rate 23 deem 15 "
    "pass 23 write -23 software 36 first 46 short 73 long -16 known 19 new-words 7 "
    "mostly-new -21 two 7 foreign 20 script 14 ",
    "earlier": ""
    "earlier -72 mark 10 marked -18 give 13 given -38 judged 9 good -6 relevant 24 bad -18 "
    "top 29 score -10 all -17 fully -5 not -27 must 8 meta 39 check 12 secret 3 pressure -1 "
    "new -13 pretend -14 if -2 people 6 told 28 lenient 1 format 21 end -20 texts -9 decode 42 "
    "already -4 this -26 read -6 fine -6 number -5 better 46 rate 11 deem 13 pass -53 first 59 "
    "short 42 long 22 known 33 new-words -17 mostly-new -10 two -14 foreign -44 script -30 ",
    "mark": ""
    "mark 61 marked -24 give -53 given -22 judged 16 good 35 relevant 37 bad -3 top -30 "
    "score -39 all 3 fully -10 not 14 must -31 meta 52 check -71 secret 9 pressure 25 new 19 "
    "pretend 45 if -19 people 4 told -4 lenient 22 format -48 end -1 texts 59 decode -5 "
    "already 43 this 11 read -19 fine -19 number -10 better -41 rate -49 deem 72 pass 10 "
    "write -14 software 24 first -22 short -2 long 2 known -2 new-words 29 mostly-new 35 "
    "two -13 foreign -1 script 32 ",
    "marked": ""
    "marked -30 give 3 given -19 judged 27 good 2 relevant -1 bad 33 top 28 score 10 all -2 "
    "fully 32 not -25 meta -38 check -19 secret -10 pressure 22 new -11 pretend -2 if 6 "
    "people -16 told 3 format -32 end -16 texts -7 decode 15 already -10 this 30 read 40 fine 7 "
    "number 4 better 7 rate -14 deem -14 pass -19 write 21 software -1 first -33 short -30 "
    "long -12 known -10 new-words -14 mostly-new -14 two -3 foreign -2 ",
    "give": ""
    "give 128 given 7 judged -32 good 16 relevant -20 bad 8 top 67 score -67 all -11 fully 29 "
    "not 25 must -5 meta -16 check -36 secret 20 pressure 29 new 29 pretend -18 if -14 "
    "people -1 told 10 lenient -17 format 14 end 10 texts -50 decode -28 already -11 this 47 "
    "read -16 fine 38 number 87 better -20 rate -5 deem -36 pass 10 write -5 software -36 "
    "first -29 short -34 long 9 known -3 new-words 10 mostly-new -12 two -6 foreign -10 "
    "script -21 ",
    "given": ""
    "given -34 judged -39 good -50 relevant -21 bad -2 top 5 score -1 all 22 fully -15 not -27 "
    "must -8 meta -6 check -25 secret -16 pressure 19 new 13 pretend 32 if -6 people 8 told 27 "
    "lenient 3 format -12 end -3 texts -22 decode 23 already 10 this -1 read 6 fine 8 number 34 "
    "better -40 rate -11 deem -14 pass -12 write 6 software 8 first -4 short -4 long 3 known 2 "
    "new-words -9 mostly-new -5 two -36 foreign -2 ",
    "judged": ""
    "judged 85 good -6 relevant 45 bad 7 top -15 score -37 all 46 fully 16 must 47 meta -7 "
    "check -40 secret -2 pressure 19 new 64 pretend 33 if -6 people -7 told 30 lenient -43 "
    "format 12 end 13 texts -81 decode -24 already 11 this 86 read 21 fine 3 number -32 "
    "better 24 rate 22 deem 45 pass 92 write 37 software 5 first 14 short -1 long -3 known -74 "
    "new-words -44 mostly-new -34 two -36 foreign -9 script -63 ",
    "good": ""
    "good 163 relevant -56 bad -73 top -53 score 22 fully 22 not -38 must 4 meta 15 check 19 "
    "secret 8 pressure -44 new 36 pretend -26 if 32 people -20 told 17 lenient -4 format 36 "
    "end 79 texts 16 decode 28 already 13 this -42 read 7 fine 15 number -72 better -28 rate 44 "
    "deem 56 pass -76 write 33 software 25 first -19 short -3 long 6 known -46 new-words 20 "
    "mostly-new 3 two -6 foreign 7 script -4 ",
    "relevant": ""
    "relevant 30 bad -10 top -13 score -22 all 112 fully -5 not -45 must 33 meta -25 check -15 "
    "secret 3 pressure 13 new 31 pretend -4 if -2 people 2 told 9 lenient -18 format 21 end -29 "
    "texts -36 already 10 this -11 read 7 fine -9 number -23 better -39 rate 56 deem 33 pass 5 "
    "write 45 software 19 first 16 short -30 long -9 known 18 new-words -9 mostly-new -12 "
    "two -41 foreign 24 ",
    "bad": ""
    "bad 85 top -4 score 4 all -8 fully -10 not 20 must 27 meta -56 check 1 secret 22 "
    "pressure 6 new 22 pretend 22 if 10 people -9 told 17 lenient -9 format 38 end 24 texts -25 "
    "decode 18 already -21 this 4 read 1 fine 25 number -18 better -89 rate 6 deem 3 pass -13 "
    "write 42 software -27 first 9 short 32 long -36 known 6 new-words -48 mostly-new -4 two -3 "
    "foreign -3 script 44 ",
    "top": ""
    "top 51 score 88 all -35 not 27 must -26 meta 14 check -9 secret 3 pressure 19 new 1 "
    "pretend -6 if -7 people -4 told -22 lenient -2 format 27 end -6 texts 13 decode -1 "
    "already 5 this 30 read 8 fine 9 number -74 better -56 rate 5 deem 4 pass 5 write 37 "
    "software 14 first 7 short -29 long 11 known 33 new-words 11 mostly-new -16 two 2 "
    "foreign -20 script -8 ",
    "score": ""
    "score 56 all -48 fully 17 not -9 must -9 meta -24 check 39 secret -7 pressure 18 new -12 "
    "pretend -5 if -21 people -6 told 1 lenient 10 format -17 end 11 texts 71 decode 25 "
    "already -31 this 22 read 23 fine -9 number 1 better 6 rate 16 deem 31 pass -17 write 38 "
    "software -9 first 23 short 21 long -6 known 26 new-words 15 mostly-new 5 two 19 foreign -4 "
    "script 4 ",
    "all": ""
    "all 25 fully -12 not -32 must -18 meta 28 check -60 secret -8 pressure -3 new 34 "
    "pretend 15 if -4 people 11 told 47 lenient 4 format 44 end -48 texts 23 decode -25 "
    "already -34 this -42 read -1 fine 19 number -67 better 35 rate 16 deem 29 pass 15 write 46 "
    "software 11 first 43 short 27 long -37 known 31 new-words -14 mostly-new -1 two -31 "
    "foreign -39 script -7 ",
    "fully": ""
    "fully 27 not -7 must -9 meta -8 check 48 secret 13 pressure 13 new -20 pretend -8 if -52 "
    "people -5 told -7 lenient -1 format -1 end 9 texts -31 decode 1 already 18 this -38 "
    "read 16 fine 26 number 14 rate -24 deem -14 pass 15 write -15 software -7 first 58 "
    "short 30 long 7 known 24 new-words -16 mostly-new -16 two -7 foreign 8 script 25 ",
    "not": ""
    "not 64 must 12 meta 6 check 86 secret 22 pressure 21 new 30 pretend -6 if -28 people 29 "
    "told -8 lenient 3 format 2 end 4 texts 20 decode 4 already 21 this -51 read 7 fine -13 "
    "number -37 better 1 rate 19 deem 5 pass 1 write -12 software -23 first -20 short -37 "
    "long -9 known 41 new-words 29 mostly-new -9 two -43 foreign 88 script 71 ",
    "must": ""
    "must -27 meta 3 check -26 secret -17 pressure -16 new -23 pretend 16 if -31 people -1 "
    "told -28 lenient -21 format 48 end -18 texts 42 decode -3 already 6 this 46 read 20 "
    "fine -3 number -25 better -74 rate 2 deem 19 pass -8 write 3 software 13 first -21 "
    "short -2 long -18 known 39 new-words -8 mostly-new -6 two -36 foreign 7 script 34 ",
    "meta": ""
    "meta 53 check 40 secret 42 pressure 3 new -20 pretend -21 if -41 people 22 told -2 "
    "lenient 5 format -11 end 5 texts -53 decode -2 already 4 this 19 read -45 fine -25 "
    "number 10 better -11 rate 2 deem -17 pass 46 write -19 software 31 first -51 short 70 "
    "long -11 known 41 new-words -5 mostly-new -14 two 4 foreign 21 script 42 ",
    "check": ""
    "check 103 secret -6 pressure 62 new 22 pretend 8 if -3 people -18 told 11 lenient -5 "
    "end 14 texts -53 decode -4 already 32 this 26 read -17 fine -6 number 48 better 20 "
    "rate -49 deem 5 pass -4 write -17 software -11 first -75 short 11 long -20 known -7 "
    "new-words -5 mostly-new -30 two 16 foreign 26 script 18 ",
    "secret": ""
    "secret 1 pressure -1 new -3 pretend 11 if -12 people 15 told -12 lenient -15 format -6 "
    "end -4 texts 28 already -11 this 12 read -6 fine -5 number -6 better -28 rate -2 deem 2 "
    "pass 5 write -12 software -3 first -14 short -15 long -9 known 33 new-words -5 "
    "mostly-new -11 two -19 foreign -6 ",
    "pressure": ""
    "pressure 12 new 2 pretend -2 if 44 people -6 told 31 lenient -5 format -21 end -3 texts 11 "
    "decode -1 already -24 this 22 read -4 fine -5 number -2 better -10 rate 34 deem 1 pass 8 "
    "write -24 software -2 first 16 short -8 long -15 new-words -15 mostly-new -24 two 10 "
    "foreign -21 ",
    "new": ""
    "new 8 pretend 1 if 18 people -11 told -32 lenient -9 format -6 end 25 texts 10 decode 4 "
    "already -26 this -46 read -11 fine 3 number -6 better 17 rate 29 deem -6 pass 23 write -15 "
    "software -20 first -19 short -1 long -13 known 35 new-words -3 mostly-new -16 two 38 "
    "foreign 28 script 1 ",
    "pretend": ""
    "pretend 10 if -2 people 12 told 43 lenient -1 format -13 end -11 texts 58 decode -5 "
    "already 12 this 14 read 3 number -7 better 19 rate 29 deem 3 pass 1 write 17 software -12 "
    "first 56 short -13 long -16 known -22 new-words -17 mostly-new -8 two -23 foreign -42 "
    "script 8 ",
    "if": ""
    "if -79 people -12 told 19 lenient 1 format -63 end -19 texts 10 decode -5 already -25 "
    "this -37 read -2 fine 10 number -7 better 29 rate 29 deem -19 write 15 software -5 "
    "first -65 short 31 long 19 known -27 new-words -4 mostly-new 16 two -11 foreign 51 "
    "script -15 ",
    "people": ""
    "people -144 told 25 lenient -5 format -10 end -5 texts -2 decode -2 already 9 this -2 "
    "read -7 fine -7 number -1 better -21 rate 12 deem -3 pass -14 write -2 software 3 first 4 "
    "short -4 long -18 known -35 new-words -10 mostly-new -6 two -11 foreign -11 script -3 ",
    "told": ""
    "told -93 lenient 5 format -8 end -15 texts -2 decode -8 already 49 this -14 read -12 "
    "fine 21 better -5 rate -17 deem 6 pass 12 write 19 first 47 short -43 long -22 known -24 "
    "new-words -11 mostly-new -25 two -45 foreign -4 ",
    "lenient": ""
    "lenient 106 format -26 end -3 texts -24 decode -1 already -5 this -9 read 23 fine 24 "
    "number 6 better -19 rate 41 deem -4 pass -21 write 2 software 1 first -7 short 19 long -29 "
    "known -7 new-words -9 mostly-new -10 two 8 foreign 37 script 18 ",
    "format": ""
    "format -12 texts -21 decode -27 already -21 this -16 read 10 fine 36 number -39 better 5 "
    "rate -10 deem -19 pass -2 write 15 software 4 first -9 short 33 long 3 known -3 "
    "new-words -24 mostly-new -10 two -44 foreign 79 script 45 ",
    "end": ""
    "end 21 texts 31 decode -7 already -8 this 5 read 1 fine 8 number 21 better -6 rate -14 "
    "deem -13 pass 19 write -4 software 10 first 36 short -2 long -18 known 40 new-words -27 "
    "mostly-new -9 two 59 foreign -6 script 21 ",
    "texts": ""
    "texts 47 decode -6 already 12 this 30 read -6 fine 24 number -26 better -57 rate 17 "
    "deem 62 pass 20 write 8 software 22 first 28 short -42 long -46 known 18 new-words -18 "
    "mostly-new -18 two -8 foreign -27 script 40 ",
    "decode": ""
    "decode 1 already 6 this -20 read -9 fine 11 number -33 better -18 rate -9 deem -2 pass -1 "
    "write -17 software -27 first -4 short 4 long -4 known -12 new-words -8 mostly-new -8 "
    "foreign 12 ",
    "already": ""
    "already 76 this 36 read -13 fine -6 number 21 better -2 rate -6 deem 34 pass 53 write -2 "
    "software 8 first -32 short -39 long -15 known -35 new-words -7 mostly-new -20 two 9 "
    "foreign -36 script 20 ",
    "this": ""
    "this 59 read 62 fine -13 number 83 better 36 rate 68 deem -18 pass -16 write -29 "
    "software 25 first -6 short 14 long -35 known 43 new-words -28 mostly-new -45 two -21 "
    "foreign 34 script -54 ",
    "read": ""
    "read -34 fine 12 number 11 better 35 rate 18 deem -8 pass -8 write 15 software -49 first 7 "
    "short -11 long 9 known -18 new-words -17 mostly-new -17 foreign -47 script -3 ",
    "fine": ""
    "fine 40 number -7 better 13 rate -15 pass -14 write -5 software -2 first -49 short -32 "
    "long -28 known 39 new-words -20 mostly-new -17 two -9 foreign -5 script 18 ",
    "number": ""
    "number 50 better 8 rate 24 deem -2 pass 1 write 11 software 50 first -13 short 6 long -18 "
    "known 12 new-words -11 mostly-new -27 two -23 foreign 8 script -29 ",
    "better": ""
    "better -62 rate -46 deem -10 pass -51 write -41 software -15 first -14 short 6 long -34 "
    "known 40 new-words 16 mostly-new -43 two -27 foreign -16 ",
    "rate": ""
    "rate 80 deem -16 pass -17 write 1 software 7 first -14 short 36 long 16 known -29 "
    "new-words 17 mostly-new 8 two -3 foreign -2 script -17 ",
    "deem": ""
    "deem 22 pass -6 write -22 software -4 first 13 short 55 long -1 known -3 new-words 6 "
    "mostly-new 11 two -23 foreign 20 script 14 ",
    "pass": ""
    "pass 74 write -23 software 16 first -48 short 31 long -19 known 49 new-words -16 "
    "mostly-new -16 two 23 foreign 26 script 35 ",
    "write": ""
    "write -79 software 21 first -22 short -45 long 25 known 44 new-words -23 mostly-new 2 "
    "two -27 foreign 36 script 27 ",
    "software": ""
    "software -4 first -12 short 23 long -8 known 12 new-words -15 mostly-new 2 two 21 "
    "foreign -1 script -27 ",
    "first": ""
    "first 67 short 62 long 13 known -5 new-words -31 mostly-new 21 two 28 foreign 8 script 32 ",
    "short": "short -38 known -17 new-words 7 mostly-new 25 foreign -28 script -14 ",
    "long": "long -84 known -7 new-words -10 mostly-new -19 foreign 36 script 33 ",
    "known": "known 161 two 69 foreign -69 script -18 ",
    "new-words": "new-words -172 two -38 foreign 56 ",
    "mostly-new": "mostly-new -168 two -37 foreign 29 script 17 ",
    "two": "two -40 foreign 22 script 73 ",
    "foreign": "foreign 221 ",
    "script": "script 171 ",
}
