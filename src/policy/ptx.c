/* SPDX-License-Identifier: Apache-2.0 */
/* What a text in PTX declares: words, declarations, functions. Sizes of variables are ptx_size.c's. */
#include "policy/ptx.h"

#include <string.h>

#include "base/bits.h"
#include "policy/device_runtime.h"
#include "policy/ptx_word.h"

static void add(uint64_t *sum, uint64_t bytes)
{
	if (__builtin_add_overflow(*sum, bytes, sum))
		*sum = UINT64_MAX;
}

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Up to this alignment a gap is no longer than the text of the variable before it. */
#define ALIGN_FREE_BYTES 16

/* What stands before the names of a declaration. */
struct variable {
	uint64_t element_bytes, vector, align;
	bool is_managed;
};

/* Opaque references to textures, samplers and surfaces; the driver says no size. */
#define REFERENCE_BYTES 128

static uint64_t type_bytes(const struct ptx_words *w)
{
	static const struct {
		const char *name;
		uint8_t bytes;
	} types[] = {
		{".b8", 1},
		{".u8", 1},
		{".s8", 1},
		{".b16", 2},
		{".u16", 2},
		{".s16", 2},
		{".f16", 2},
		{".bf16", 2},
		{".b32", 4},
		{".u32", 4},
		{".s32", 4},
		{".f32", 4},
		{".f16x2", 4},
		{".bf16x2", 4},
		{".b64", 8},
		{".u64", 8},
		{".s64", 8},
		{".f64", 8},
		{".b128", 16},
		{".texref", REFERENCE_BYTES},
		{".samplerref", REFERENCE_BYTES},
		{".surfref", REFERENCE_BYTES},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(types); i++)
		if (ptx_is(w, types[i].name))
			return types[i].bytes;
	return 0;
}

static uint64_t vector_of(const struct ptx_words *w)
{
	return ptx_is(w, ".v2") ? 2 : ptx_is(w, ".v4") ? 4 : ptx_is(w, ".v8") ? 8 : 0;
}

/* Behind an opening bracket that is the current word, to behind its partner. */
static void skip_nested(struct ptx_words *w)
{
	unsigned depth = 0;

	do {
		if (ptx_is(w, "(") || ptx_is(w, "[") || ptx_is(w, "{"))
			depth++;
		else if (ptx_is(w, ")") || ptx_is(w, "]") || ptx_is(w, "}"))
			depth--;
		ptx_next(w);
	} while (depth > 0 && w->kind != PTX_END);
	if (depth > 0)
		ptx_fail(w);
}

/* To behind the semicolon that ends the statement. */
static void skip_statement(struct ptx_words *w)
{
	while (!ptx_is(w, ";")) {
		if (w->kind == PTX_END || ptx_is(w, "}") || ptx_is(w, ")") || ptx_is(w, "]"))
			ptx_fail(w);
		if (w->kind == PTX_END)
			return;
		if (ptx_is(w, "(") || ptx_is(w, "[") || ptx_is(w, "{"))
			skip_nested(w);
		else
			ptx_next(w);
	}
	ptx_next(w);
}

/* ".attribute(.managed, .unified(1, 2))" */
static void read_attribute(struct ptx_words *w, struct variable *v)
{
	ptx_next(w);
	ptx_expect(w, "(");
	do {
		if (ptx_take(w, ".managed")) {
			v->is_managed = true;
		} else {
			ptx_expect(w, ".unified");
			if (ptx_is(w, "("))
				skip_nested(w);
			else
				ptx_fail(w);
		}
	} while (ptx_take(w, ","));
	ptx_expect(w, ")");
}

static void read_specifiers(struct ptx_words *w, struct variable *v)
{
	while (w->kind == PTX_DIRECTIVE) {
		uint64_t bytes = type_bytes(w), vector = vector_of(w);

		if (ptx_is(w, ".attribute")) {
			read_attribute(w, v);
		} else if (ptx_is(w, ".align")) {
			ptx_next(w);
			v->align = ptx_number(w);
			if (v->align == 0 || (v->align & (v->align - 1)) != 0)
				ptx_fail(w);
		} else if (bytes && !v->element_bytes) {
			v->element_bytes = bytes;
			ptx_next(w);
		} else if (vector && v->vector == 1) {
			v->vector = vector;
			ptx_next(w);
		} else {
			ptx_fail(w);
		}
	}
	if (!v->element_bytes)
		ptx_fail(w);
}

/* Behind "=": how many elements of the first dimension there are, and how many of all. */
static void read_initialiser(struct ptx_words *w, uint64_t *ret_first, uint64_t *ret_all)
{
	unsigned braces = 0, parentheses = 0;

	*ret_first = *ret_all = 1;
	while (w->kind != PTX_END) {
		if (braces == 0 && parentheses == 0 && (ptx_is(w, ",") || ptx_is(w, ";")))
			return;
		if (ptx_is(w, "{"))
			braces++;
		else if (ptx_is(w, "("))
			parentheses++;
		else if ((ptx_is(w, "}") && braces-- == 0) ||
			 (ptx_is(w, ")") && parentheses-- == 0) || ptx_is(w, ";") ||
			 w->kind == PTX_STRING)
			ptx_fail(w);
		else if (ptx_is(w, ",") && parentheses == 0) {
			*ret_first += braces == 1;
			*ret_all += 1;
		}
		ptx_next(w);
	}
	ptx_fail(w);
}

/* One name with its count, dimensions and initialiser; returns its bytes. */
static uint64_t read_declarator(struct ptx_words *w, const struct variable *v, bool is_extern)
{
	uint64_t element = v->element_bytes * v->vector, count = 1, rest = 1, first, all, align;
	bool is_open = false;

	if (w->kind != PTX_NAME)
		ptx_fail(w);
	ptx_next(w);
	if (ptx_take(w, "<")) {
		count = ptx_number(w);
		ptx_expect(w, ">");
	}
	for (bool is_first = true; ptx_take(w, "["); is_first = false) {
		if (is_first && ptx_is(w, "]"))
			is_open = true;
		else
			rest = times(rest, ptx_expression(w));
		ptx_expect(w, "]");
	}
	if (ptx_take(w, "=")) {
		read_initialiser(w, &first, &all);
		if (is_open) {
			rest = times(rest, first);
			rest = rest > all ? rest : all;
		}
	} else if (is_open && !is_extern) {
		ptx_fail(w);
	}
	if (is_extern)
		return 0;
	align = v->align ? v->align : v->element_bytes * v->vector;
	element = times(round_up_u64(times(element, rest), align), count);
	/* What lies before it may be aligned less. */
	if (align > ALIGN_FREE_BYTES)
		add(&element, align - 1);
	return element;
}

/* Behind ".global" and its like, to behind the semicolon. */
static void read_variables(struct ptx_words *w, bool is_extern, struct ptx *ptx)
{
	struct variable v = {.vector = 1};

	if (ptx_take(w, "[")) { /* a bank of constants */
		ptx_number(w);
		ptx_expect(w, "]");
	}
	read_specifiers(w, &v);
	do
		add(v.is_managed ? &ptx->managed_bytes : &ptx->device_bytes,
			read_declarator(w, &v, is_extern));
	while (ptx_take(w, ","));
	ptx_expect(w, ";");
}

/* ".loc 1 20 3" and what may follow: ", function_name label+4, inlined_at 1 10 3". It has no end of its own. */
static void read_loc(struct ptx_words *w)
{
	ptx_next(w);
	ptx_number(w);
	ptx_number(w);
	ptx_number(w);
	while (ptx_take(w, ",")) {
		if (ptx_take(w, "function_name")) {
			if (w->kind != PTX_NAME)
				ptx_fail(w);
			ptx_next(w);
			if (ptx_take(w, "+"))
				ptx_number(w);
		} else {
			ptx_expect(w, "inlined_at");
			ptx_number(w);
			ptx_number(w);
			ptx_number(w);
		}
	}
}

/* ".pragma "a", "b";" */
static void read_pragma(struct ptx_words *w)
{
	ptx_next(w);
	do {
		if (w->kind != PTX_STRING)
			ptx_fail(w);
		ptx_next(w);
	} while (ptx_take(w, ","));
	ptx_expect(w, ";");
}

static bool is_linkage(const struct ptx_words *w)
{
	return ptx_is(w, ".extern") || ptx_is(w, ".visible") || ptx_is(w, ".weak") ||
	       ptx_is(w, ".common");
}

/* A declaration of variables, with its linkage; false where there is none. */
static bool read_declaration(struct ptx_words *w, bool is_extern, struct ptx *ptx)
{
	if (ptx_take(w, ".global") || ptx_take(w, ".const")) {
		read_variables(w, is_extern, ptx);
	} else if (ptx_take(w, ".tex")) {
		add(&ptx->device_bytes, REFERENCE_BYTES);
		read_variables(w, is_extern, ptx);
	} else if (ptx_is(w, ".reg") || ptx_is(w, ".local") || ptx_is(w, ".shared") ||
		   ptx_is(w, ".param") || ptx_is(w, ".sreg")) {
		skip_statement(w);
	} else {
		return false;
	}
	return true;
}

struct linkage {
	bool is_extern; /* it is elsewhere */
	bool is_weak;	/* another one may be taken in its place */
};

/* Linkage before what it is of. */
static struct linkage read_linkage(struct ptx_words *w)
{
	struct linkage linkage = {.is_extern = false};

	for (; is_linkage(w); ptx_next(w)) {
		linkage.is_extern |= ptx_is(w, ".extern");
		linkage.is_weak |= ptx_is(w, ".weak");
	}
	return linkage;
}

/* A statement of a function that begins with a directive. */
static void read_inner_directive(struct ptx_words *w, struct ptx *ptx)
{
	struct linkage linkage;

	if (ptx_is(w, ".loc")) {
		read_loc(w);
	} else if (ptx_is(w, ".pragma")) {
		read_pragma(w);
	} else if (ptx_is(w, ".branchtargets") || ptx_is(w, ".calltargets") ||
		   ptx_is(w, ".callprototype")) {
		skip_statement(w);
	} else {
		linkage = read_linkage(w);
		if (!read_declaration(w, linkage.is_extern, ptx))
			ptx_fail(w);
	}
}

/* A label, or an instruction to behind its semicolon. */
static void read_instruction(struct ptx_words *w)
{
	ptx_next(w);
	if (!ptx_take(w, ":"))
		skip_statement(w);
}

/* A function's code, from its opening brace to behind its closing one. */
static void read_body(struct ptx_words *w, struct ptx *ptx)
{
	unsigned depth = 0;

	do {
		if (ptx_take(w, "{")) {
			depth++;
		} else if (ptx_take(w, "}")) {
			depth--;
		} else if (ptx_take(w, "@")) {
			ptx_take(w, "!");
			if (w->kind != PTX_NAME)
				ptx_fail(w);
			ptx_next(w);
		} else if (w->kind == PTX_NAME) {
			read_instruction(w);
		} else if (w->kind == PTX_DIRECTIVE) {
			read_inner_directive(w, ptx);
		} else if (!ptx_take(w, ";")) {
			ptx_fail(w);
		}
	} while (depth > 0 && w->kind != PTX_END);
	if (depth > 0)
		ptx_fail(w);
}

static void note_function(const char *name, size_t length, struct ptx *ptx)
{
	ptx->has_heap |= device_runtime_is_heap(name, length);
	ptx->has_printf |= device_runtime_is_printf(name, length);
}

/* What may stand between a function's parameters and its code, but for its numbers. */
static bool is_performance(const struct ptx_words *w)
{
	static const char *const words[] = {".maxnreg", ".maxntid", ".reqntid", ".minnctapersm",
		".maxnctapersm", ".noreturn", ".reqnctapercluster", ".explicitcluster",
		".maxclusterrank", ".blocksareclusters", ".abi_preserve", ".abi_preserve_control",
		".unique"};

	for (unsigned i = 0; i < ARRAY_SIZE(words); i++)
		if (ptx_is(w, words[i]))
			return true;
	return w->kind == PTX_NUMBER || ptx_is(w, ",");
}

/* Behind ".entry" or ".func", to behind its code or its semicolon. */
static void read_function(struct ptx_words *w, bool is_weak, struct ptx *ptx)
{
	struct variable ignored;
	const char *name;
	size_t length;

	while (ptx_is(w, ".attribute"))
		read_attribute(w, &ignored);
	if (ptx_is(w, "("))
		skip_nested(w);
	if (w->kind != PTX_NAME)
		ptx_fail(w);
	name = w->word;
	length = w->length;
	ptx_next(w);
	if (ptx_is(w, "("))
		skip_nested(w);
	while (!ptx_is(w, "{") && !ptx_is(w, ";") && w->kind != PTX_END) {
		if (ptx_is(w, ".pragma"))
			read_pragma(w);
		else if (ptx_is(w, ".attribute"))
			read_attribute(w, &ignored);
		else if (is_performance(w))
			ptx_next(w);
		else
			ptx_fail(w);
	}
	/* One that the text defines itself is not the device's. */
	if (!ptx_is(w, "{") || is_weak)
		note_function(name, length, ptx);
	if (ptx_is(w, "{"))
		read_body(w, ptx);
	else
		ptx_expect(w, ";");
}

/* ".file 1 "name", 12, 34" */
static void read_file(struct ptx_words *w)
{
	ptx_next(w);
	ptx_number(w);
	if (w->kind != PTX_STRING)
		ptx_fail(w);
	ptx_next(w);
	while (ptx_take(w, ","))
		ptx_number(w);
}

static void read_target(struct ptx_words *w)
{
	do {
		ptx_next(w);
		if (w->kind != PTX_NAME)
			ptx_fail(w);
		ptx_next(w);
	} while (ptx_is(w, ","));
}

/* Debugging information, which the device never sees. */
static void read_section(struct ptx_words *w)
{
	ptx_next(w);
	if (w->kind != PTX_DIRECTIVE && w->kind != PTX_NAME)
		ptx_fail(w);
	ptx_next(w);
	if (ptx_is(w, "{"))
		skip_nested(w);
	else
		ptx_fail(w);
}

/* Directives of the text as a whole; false where the current word is none. */
static bool read_header(struct ptx_words *w)
{
	if (ptx_take(w, ".version") || ptx_take(w, ".address_size")) {
		if (w->kind != PTX_NUMBER)
			ptx_fail(w);
		ptx_next(w);
	} else if (ptx_is(w, ".target")) {
		read_target(w);
	} else if (ptx_is(w, ".file")) {
		read_file(w);
	} else if (ptx_is(w, ".loc")) {
		read_loc(w);
	} else if (ptx_is(w, ".section")) {
		read_section(w);
	} else if (ptx_is(w, ".pragma")) {
		read_pragma(w);
	} else if (ptx_is(w, ".alias")) {
		skip_statement(w);
	} else {
		return false;
	}
	return true;
}

static void read_outer(struct ptx_words *w, struct ptx *ptx)
{
	struct linkage linkage;

	if (ptx_take(w, ";") || read_header(w))
		return;
	if (ptx_is(w, "{")) {
		read_body(w, ptx);
		return;
	}
	linkage = read_linkage(w);
	if (ptx_take(w, ".entry") || ptx_take(w, ".func"))
		read_function(w, linkage.is_weak, ptx);
	else if (!read_declaration(w, linkage.is_extern, ptx))
		ptx_fail(w);
}

bool ptx_read(const char *text, size_t size, struct ptx *ret_ptx)
{
	struct ptx_words words;

	*ret_ptx = (struct ptx){.device_bytes = 0};
	ptx_begin(&words, text, size);
	if (!ptx_is(&words, ".version"))
		return false;
	while (words.kind != PTX_END)
		read_outer(&words, ret_ptx);
	return !words.is_bad;
}

bool ptx_names_managed(const char *text, size_t size)
{
	static const char word[] = ".managed";
	size_t matched = 0;

	for (size_t i = 0; i < size && text[i]; i++) {
		matched = text[i] == word[matched] ? matched + 1 : text[i] == '.';
		if (word[matched] == '\0')
			return true;
	}
	return false;
}
