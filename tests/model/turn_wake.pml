/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a slice that waits for another one's turn is woken (turn_wait() and turn_word_wake() in src/region), for every interleaving.
 *
 * The holder gives the turn back, and may take it again: each time it changes its word, counts its news and wakes whoever sleeps.
 * The waiter reads the word to decide whether to wait. Then it reads the news, looks whether the word is still as it was,
 * and sleeps where the news still are. Sleeps have no end here: one that nobody ends is a search that ends in the wrong state.
 */
/* run: */
/* run-must-fail: -DMUTANT_WORD_BEFORE_NEWS */
/* run-must-fail: -DMUTANT_NEWS_BEFORE_WORD_CHANGES */

#define ROUNDS 2

byte word;  /* even: held; odd: free. Each change makes it another one. */
byte news;
bool is_asleep;

#define IS_HELD(w) (w % 2 == 0)

inline wake()
{
	news++;
	is_asleep = false
}

active proctype holder()
{
	byte rounds = ROUNDS;

	do
	:: rounds > 0 -> rounds--;
#ifdef MUTANT_NEWS_BEFORE_WORD_CHANGES
		d_step { wake() };
		word++;
#else
		word++;
		news++;
		is_asleep = false;
#endif
		if
		:: rounds > 0 -> word++ /* takes it again, of which nobody is told */
		:: else -> skip
		fi
	:: else -> break
	od
}

active proctype waiter()
{
	byte decided, seen_word, seen_news;

again:
#ifdef MUTANT_WORD_BEFORE_NEWS
	/* One copy of the record, in the order of its fields. */
	decided = word;
	seen_news = news;
	seen_word = decided;
#else
	decided = word;
	if
	:: !IS_HELD(decided) -> goto taken
	:: else -> skip
	fi;
	seen_news = news;
	seen_word = word;
#endif
	if
	:: !IS_HELD(decided) -> goto taken
	:: IS_HELD(decided) && seen_word != decided -> goto again
	:: else -> skip
	fi;
	/* FUTEX_WAIT */
	if
	:: d_step { news == seen_news -> is_asleep = true }; !is_asleep
	:: d_step { news != seen_news -> skip }
	fi;
	goto again;
taken:
	skip
}
