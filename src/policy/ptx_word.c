/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a text in PTX. Constant expressions are ptx_expression.c's. */
#include "policy/ptx_word.h"

#include <string.h>

#include "base/bits.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

/* The character so far behind what was read, 0 at the end. Those before it are known to be none. */
static char peek(const struct ptx_words *w, size_t ahead)
{
	return w->size - w->at > ahead ? w->text[w->at + ahead] : '\0';
}

void ptx_fail(struct ptx_words *w)
{
	w->is_bad = true;
	w->kind = PTX_END;
	w->length = 0;
	w->size = w->at;
}

/* A comment to the end of its line. Readers may differ where that is. */
static void skip_line(struct ptx_words *w)
{
	for (char c, last = '\0'; (c = peek(w, 0)) != '\0' && c != '\n'; w->at++) {
		if (last == '\r' || (c == '\\' && strchr("\r\n", peek(w, 1)))) {
			ptx_fail(w);
			return;
		}
		last = c;
	}
}

static void skip_comment(struct ptx_words *w)
{
	for (w->at += 2; peek(w, 0) != '\0'; w->at++)
		if (peek(w, 0) == '*' && peek(w, 1) == '/') {
			w->at += 2;
			return;
		}
	ptx_fail(w);
}

static void skip_blanks(struct ptx_words *w)
{
	for (;;) {
		if (is_blank(peek(w, 0)))
			w->at++;
		else if (peek(w, 0) == '/' && peek(w, 1) == '/')
			skip_line(w);
		else if (peek(w, 0) == '/' && peek(w, 1) == '*')
			skip_comment(w);
		else
			return;
	}
}

static size_t letters_from(const struct ptx_words *w, size_t from, const char *more)
{
	size_t length = from;
	char c;

	while ((c = peek(w, length)) != '\0' &&
		(is_letter(c) || is_digit(c) || strchr(more, c) != NULL))
		length++;
	return length;
}

/* Up to the quote that ends it; 0 where that is not certain. */
static size_t string_length(const struct ptx_words *w)
{
	char c;

	for (size_t i = 1; (c = peek(w, i)) != '\0' && c != '\n' && c != '\\'; i++)
		if (c == '"')
			return i + 1;
	return 0;
}

static size_t sign_length(const struct ptx_words *w)
{
	static const char pairs[][3] = {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};

	for (unsigned i = 0; i < ARRAY_SIZE(pairs); i++)
		if (peek(w, 0) == pairs[i][0] && peek(w, 1) == pairs[i][1])
			return 2;
	return strchr("+-*/%<>=!~&^|?:()[]{},;@.", peek(w, 0)) ? 1 : 0;
}

static bool is_name_start(const struct ptx_words *w)
{
	char c = peek(w, 0), next;

	if (is_letter(c) || c == '$')
		return true;
	if (c != '%')
		return false;
	next = peek(w, 1);
	return is_letter(next) || is_digit(next) || next == '$';
}

/* Zeros alone may follow the first one, so that no reader can find more. */
static void check_end(struct ptx_words *w)
{
	if (w->size == SIZE_MAX)
		return;
	for (size_t i = w->at; i < w->size; i++)
		if (w->text[i] != '\0') {
			ptx_fail(w);
			return;
		}
}

void ptx_next(struct ptx_words *w)
{
	char c;

	skip_blanks(w);
	c = peek(w, 0);
	w->word = w->text + w->at;
	if (c == '\0') {
		w->kind = PTX_END;
		w->length = 0;
		check_end(w);
		return;
	}
	if (is_name_start(w)) {
		w->kind = PTX_NAME;
		w->length = letters_from(w, 1, "$");
	} else if (c == '.' && is_letter(peek(w, 1))) {
		w->kind = PTX_DIRECTIVE;
		w->length = letters_from(w, 1, "");
	} else if (is_digit(c)) {
		w->kind = PTX_NUMBER;
		w->length = letters_from(w, 1, ".");
	} else if (c == '"') {
		w->kind = PTX_STRING;
		w->length = string_length(w);
	} else {
		w->kind = PTX_SIGN;
		w->length = sign_length(w);
	}
	if (w->length == 0)
		ptx_fail(w);
	w->at += w->length;
}

void ptx_begin(struct ptx_words *w, const char *text, size_t size)
{
	*w = (struct ptx_words){.text = text, .size = size};
	/* A mark of UTF-8. */
	if (peek(w, 0) == '\xef' && peek(w, 1) == '\xbb' && peek(w, 2) == '\xbf')
		w->at = 3;
	ptx_next(w);
}

bool ptx_is(const struct ptx_words *w, const char *word)
{
	return w->length == strlen(word) && memcmp(w->word, word, w->length) == 0;
}

bool ptx_take(struct ptx_words *w, const char *word)
{
	if (!ptx_is(w, word))
		return false;
	ptx_next(w);
	return true;
}

void ptx_expect(struct ptx_words *w, const char *word)
{
	if (!ptx_take(w, word))
		ptx_fail(w);
}
