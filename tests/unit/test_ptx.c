/* SPDX-License-Identifier: Apache-2.0 */
/* What texts in PTX declare: written ones, and random ones whose sizes are counted as they are made. */
#include "policy/ptx.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "tests/unit/cmocka_ready.h"

#define HEAD ".version 8.0\n.target sm_70\n.address_size 64\n"

static const struct {
	const char *text;
	uint64_t device_bytes, managed_bytes;
} understood[] = {
	{"", 0, 0},
	{".global .b8 a[0x10];", 16, 0},
	{".global .b8 a[010];", 8, 0},
	{".global .b8 a[0b101];", 5, 0},
	{".global .b8 a[0B101U];", 5, 0},
	{".global .b8 a[4096U];", 4096, 0},
	{".global .b8 a[4] , b[8];", 12, 0},
	{".global .b8 a[4]={1,2,3,4}, b[8];", 12, 0},
	{".global .u8 a;.global .u8 b;", 2, 0},
	{".entry k(){ret;}.global .b8 a[7];", 7, 0},
	{".global .b8 a[2*(3+4)];", 14, 0},
	{".global .b8 a[1 << 4 | 3];", 19, 0},
	{".global .b8 a[(.u64) 5 - (.s64)(2)];", 3, 0},
	{".global .b8 a[7 % 4 + !0 + !7 + +1];", 5, 0},
	{".global .b8 a[1 ? 2 : 3];", 2, 0},
	{".global .b8 a[0 ? 2 : 1 ? 9 : 3];", 9, 0},
	{".global .b8 a[(1 < 2) + (2 <= 2) + (3 > 2) + (1 >= 2) + (1 == 1) + (1 != 1)];", 4, 0},
	{".global .b8 a[WARP_SZ * 2];", 64, 0},
	{".global .b8 a[2][3][4];", 24, 0},
	{".global .b8 a[] = {1, 2, 3};", 3, 0},
	{".global .b8 a[][2] = {{1, 2}, {3, 4}, {5}};", 6, 0},
	{".global .b8 a[] = {0xff(b), 0xff00(b), mask(c, d)};", 3, 0},
	{".global .align 8 .u64 a = generic(b) + 8;", 8, 0},
	{".global .v4 .f32 a[3];", 48, 0},
	{".global .align 128 .b8 a;", 128 + 127, 0},
	{".global .b8 x<100>;", 100, 0},
	{".const .b8 a[64];", 64, 0},
	{".const[2] .b8 a[64];", 64, 0},
	{".visible .weak .common .global .b8 a[64];", 64, 0},
	{".extern .global .b8 a[];", 0, 0},
	{".extern .global .b8 a[64], b[];", 0, 0},
	{".extern .shared .align 16 .b8 s[];", 0, 0},
	{".shared .b8 s[100];", 0, 0},
	{".global .attribute(.managed) .b8 a[0x100000000];", 0, UINT64_C(1) << 32},
	{".visible .global .attribute(.unified(1, 2), .managed) .b8 a[9];", 0, 9},
	{".global .attribute(.managed) .b8 a[9];.global .b8 b[5];", 5, 9},
	{".global .b8 a[4]; // .global .b8 b[100];\n", 4, 0},
	{"/* .global .b8 b[100]; */ .global .b8 a[4];", 4, 0},
	{".file 1 \".global .b8 b[100];\", 1, 2\n.global .b8 a[4];", 4, 0},
	{".pragma \"nounroll\";\n.global .b8 a[4];", 4, 0},
	{".section .debug_info { .b8 1, 2\n .b64 .debug_abbrev\n }\n.global .b8 a[4];", 4, 0},
	{".func f(.param .b32 a);\n.alias f, g;\n.global .b8 a[4];", 4, 0},
	{".entry k(.param .u64 p) .maxntid 1, 2, 3 .pragma \"x\"; .minnctapersm 4\n"
	 "{ .reg .b64 %rd<4>; .reg .pred p; l: @!p bra l; { .param .b32 q; } \n"
	 ".loc 1 2 3, function_name $L+4, inlined_at 1 5 6\n"
	 "st.global.u32 [%rd1], 7; mov.b64 {%r1, %r2}, %rd1;\n"
	 "t: .branchtargets l, l; call (q), f, (q), t; .global .b8 inner[40]; }",
		40, 0},
	{".global .texref t;", 128 + 127, 0},
	{"\t\n.global .b8 a[4];\n\t", 4, 0},
	{".global .b64 a[9223372036854775807];", UINT64_MAX, 0},
	{".global .b8 a[9223372036854775807]; .global .b8 b[9223372036854775807];"
	 ".global .b8 c[9223372036854775807];",
		UINT64_MAX, 0},
};

static void what_is_declared_is_counted(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(understood); i++) {
		char text[2048];
		struct ptx ptx;

		snprintf(text, sizeof(text), "%s%s", HEAD, understood[i].text);
		if (!ptx_read(text, PTX_TO_ZERO, &ptx) ||
			ptx.device_bytes != understood[i].device_bytes ||
			ptx.managed_bytes != understood[i].managed_bytes)
			print_message("%s: %" PRIu64 ", %" PRIu64 "\n", understood[i].text,
				ptx.device_bytes, ptx.managed_bytes);
		assert_true(ptx_read(text, PTX_TO_ZERO, &ptx));
		assert_int_equal(ptx.device_bytes, understood[i].device_bytes);
		assert_int_equal(ptx.managed_bytes, understood[i].managed_bytes);
	}
}

/* Deeper than anybody nests. */
#define DEEP(value)                                                                                \
	"((((((((((((((((((((((((((((((((((((((((" value ")))))))))))))))))))))))))))))))))))))))" \
	")"

static const char *const not_understood[] = {
	".global .b8 a[08];",
	".global .b8 a[0x];",
	".global .b8 a[1e3];",
	".global .b8 a[n];",
	".global .b8 a[-1];",
	".global .b8 a[3 - 4];",
	".global .b8 a[~0];",
	".global .b8 a[1 / 0];",
	".global .b8 a[1 % 0];",
	".global .b8 a[1 << 63];",
	".global .b8 a[1 << 64];",
	".global .b8 a[1 >> 64];",
	".global .b8 a[9223372036854775808];",
	".global .b8 a[4294967296 * 4294967296];",
	".global .b8 a[9223372036854775807 + 1];",
	".global .b8 a[];",
	".global .b8 a[4][] = {1};",
	".global .b9 a[4];",
	".global a[4];",
	".global .b8 .b16 a;",
	".global .b8;",
	".global .b8 a[4]",
	".global .b8 a[4] = {1;",
	".global .pred a;",
	".global .align 3 .b8 a;",
	".global .align 0 .b8 a;",
	".global .v3 .b8 a;",
	".global .attribute(.other) .b8 a;",
	".unheard .b8 a;",
	".global .b8 a[4]; // \\\n.global .b8 b[100];",
	".global .b8 a; // \r.global .b8 b[100];",
	"/* .global .b8 a;",
	".file 1 \"a",
	".file 1 \"a\\\"b\"",
	"#define x 1\n",
	".entry k() {",
	".entry k() }",
	".entry k() { ret",
	".entry k() { .unheard x; }",
	".entry k() { ret; .global .b8 a[4] }",
	".entry () { }",
	"x y;",
	"\x80",
	"'",
	".global .b8 a[" DEEP("1") "];",
	".global .b8 x<n>;",
	".global .b8 x<2;",
};

static void what_is_not_understood_is_not_empty(void **state)
{
	struct ptx ptx;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(not_understood); i++) {
		char text[2048];

		snprintf(text, sizeof(text), "%s%s\n", HEAD, not_understood[i]);
		if (ptx_read(text, PTX_TO_ZERO, &ptx))
			print_message("understood: %s\n", not_understood[i]);
		assert_false(ptx_read(text, PTX_TO_ZERO, &ptx));
	}
	assert_false(ptx_read("", 0, &ptx));
	assert_false(ptx_read(".target sm_70\n", PTX_TO_ZERO, &ptx));
	assert_false(ptx_read("text", PTX_TO_ZERO, &ptx));
}

static void a_text_may_begin_with_blanks_a_mark_or_a_comment(void **state)
{
	static const char *const before[] = {
		"\t", "\r\n", "\xef\xbb\xbf", "// a\n", "/* a */", "\f"};
	struct ptx ptx;
	char text[256];

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(before); i++) {
		snprintf(text, sizeof(text), "%s%s.global .b8 a[5];", before[i], HEAD);
		assert_true(ptx_read(text, PTX_TO_ZERO, &ptx));
		assert_int_equal(ptx.device_bytes, 5);
	}
}

static void nothing_may_follow_a_zero(void **state)
{
	char text[] = HEAD ".global .b8 a[5];\0\0\0.global .b8 b[100];";
	size_t length = strlen(text);
	struct ptx ptx;

	(void)state;
	assert_true(ptx_read(text, length + 3, &ptx));
	assert_int_equal(ptx.device_bytes, 5);
	assert_false(ptx_read(text, sizeof(text), &ptx));
}

static void functions_of_the_devices_runtime_are_seen(void **state)
{
	static const struct {
		const char *text;
		bool has_heap, has_printf;
	} cases[] = {
		{".extern .func (.param .b64 r) malloc (.param .b64 s);", true, false},
		{".extern .func(.param .b64 r)malloc\n(.param .b64 s);", true, false},
		{".func (.param .b64 r) malloc (.param .b64 s);", true, false},
		{".extern .func (.param .b32 r) /**/ vprintf (.param .b64 f, .param .b64 v);",
			false, true},
		{".extern .func (.param .b32 r) cudaLaunchDeviceV2 (.param .b64 f);", true, false},
		{".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2 (.param .b64 b, .param "
		 ".b64 s);",
			true, false},
		{".extern .func (.param .b32 r) __cuda_syscall_cnpv2GetLastError\n(\n)\n;", true,
			false},
		{".extern .func mallocate (.param .b64 s);", false, false},
		{".visible .entry malloc() { ret; } .func vprintf() { ret; }", false, false},
		{".weak .func malloc() { ret; }", true, false},
		{".func malloc() { ret; } .extern .func malloc();", true, false},
		{".entry malloc_k(.param .u64 malloc) { ret; } // malloc vprintf", false, false},
	};
	struct ptx ptx;
	char text[256];

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(text, sizeof(text), "%s%s", HEAD, cases[i].text);
		assert_true(ptx_read(text, PTX_TO_ZERO, &ptx));
		assert_int_equal(ptx.has_heap, cases[i].has_heap);
		assert_int_equal(ptx.has_printf, cases[i].has_printf);
	}
}

static void the_word_of_managed_variables_is_found(void **state)
{
	(void)state;
	assert_true(ptx_names_managed("a ..managed", PTX_TO_ZERO));
	assert_true(ptx_names_managed(".mana.managed", PTX_TO_ZERO));
	assert_false(ptx_names_managed(".manage d", PTX_TO_ZERO));
	assert_false(ptx_names_managed(".managed", 7));
	assert_false(ptx_names_managed(".man\0.managed", 13));
}

/* A text that is being made, and what it declares by then. */
struct making {
	char text[1 << 16];
	size_t length;
	uint64_t device_bytes, managed_bytes;
	uint64_t seed;
};

static unsigned below(struct making *m, unsigned limit)
{
	m->seed += 0x9e3779b97f4a7c15ull;
	return (unsigned)(hash_u64(m->seed) % limit);
}

static void say(struct making *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct making *m, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	m->length +=
		(size_t)vsnprintf(m->text + m->length, sizeof(m->text) - m->length, format, args);
	va_end(args);
	assert_true(m->length < sizeof(m->text));
}

static void blank(struct making *m)
{
	static const char *const blanks[] = {
		" ", "\n", "\t", "\r\n", " /* .global .b8 no[9]; */ ", " // ; } { \"\n", "  "};

	say(m, "%s", blanks[below(m, ARRAY_SIZE(blanks))]);
}

/* Any way to write the number, as a number or as an expression of others. */
static void say_number(struct making *m, uint64_t n, unsigned depth)
{
	unsigned part = n ? below(m, (unsigned)n + 1) : 0;

	switch (below(m, depth ? 12 : 5)) {
	case 0:
		say(m, "0x%" PRIx64, n);
		return;
	case 1:
		say(m, "0%" PRIo64, n);
		return;
	case 2:
		say(m, "0b");
		for (int bit = 15; bit >= 0; bit--)
			say(m, "%d", (int)(n >> bit & 1));
		return;
	case 3:
		say(m, "%" PRIu64 "U", n);
		return;
	case 4:
		say(m, "%" PRIu64, n);
		return;
	case 5:
		say(m, "(");
		say_number(m, part, depth - 1);
		say(m, " + ");
		say_number(m, n - part, depth - 1);
		say(m, ")");
		return;
	case 6:
		say(m, "(");
		say_number(m, n + part, depth - 1);
		blank(m);
		say(m, "-");
		blank(m);
		say_number(m, part, depth - 1);
		say(m, ")");
		return;
	case 7:
		say(m, "(.u64)");
		say_number(m, n, depth - 1);
		return;
	case 8:
		say(m, "(%u ? ", part & 1);
		say_number(m, part & 1 ? n : 77, depth - 1);
		say(m, " : ");
		say_number(m, part & 1 ? 99 : n, depth - 1);
		say(m, ")");
		return;
	case 9:
		say(m, "(");
		say_number(m, n / 3, depth - 1);
		say(m, "*3+%u)", (unsigned)(n % 3));
		return;
	case 10:
		say(m, "(%" PRIu64 ">>2|0)", n << 2 | (part & 3));
		return;
	default:
		say(m, "(%" PRIu64 "^%u)", n ^ part, part);
	}
}

static const struct {
	const char *name;
	unsigned bytes;
} types[] = {{".b8", 1}, {".s16", 2}, {".f16x2", 4}, {".f32", 4}, {".u64", 8}, {".b128", 16}};

/* What is written of a value: nested as the dimensions are. */
static void say_values(struct making *m, const unsigned *dims, unsigned count)
{
	unsigned elements = count ? dims[0] : 1;

	if (count == 0) {
		static const char *const values[] = {
			"0", "0x7f", "generic(x)", "0xff(x)", "1.5", "-3"};

		say(m, "%s", values[below(m, ARRAY_SIZE(values))]);
		return;
	}
	say(m, "{");
	for (unsigned i = 0; i < elements; i++) {
		say(m, "%s", i ? ", " : "");
		say_values(m, dims + 1, count - 1);
	}
	say(m, "}");
}

static uint64_t say_declarator(struct making *m, unsigned element, unsigned align, bool is_extern)
{
	unsigned dims[3], count = below(m, 4), names = below(m, 6) ? 0 : below(m, 50);
	bool is_open = count > 0 && below(m, 4) == 0;
	uint64_t bytes = element;

	say(m, "v%u", below(m, 1000));
	if (names)
		say(m, "<%u>", names);
	for (unsigned i = 0; i < count; i++) {
		dims[i] = 1 + below(m, i == 0 && !is_open ? 3000 : 4);
		bytes *= dims[i];
		say(m, "[");
		if (!is_open || i > 0)
			say_number(m, dims[i], 3);
		say(m, "]");
	}
	if (is_open && !is_extern) {
		say(m, "=");
		blank(m);
		say_values(m, dims, count);
	} else if (!is_extern && count == 0 && below(m, 2)) {
		say(m, " = ");
		say_values(m, dims, 0);
	}
	if (is_extern)
		return 0;
	align = align ? align : element;
	while (bytes % align)
		bytes++;
	return bytes * (names ? names : 1) + (align > 16 ? align - 1 : 0);
}

static void say_variables(struct making *m)
{
	static const char *const linkages[] = {"", ".visible ", ".weak\n", ".extern ", ".common "};
	unsigned linkage = below(m, ARRAY_SIZE(linkages)), type = below(m, ARRAY_SIZE(types));
	unsigned vector = below(m, 3) ? 1 : below(m, 2) ? 2 : 4;
	unsigned align = below(m, 2) ? 1u << below(m, 10) : 0;
	bool is_managed = below(m, 4) == 0, is_shared = !is_managed && below(m, 6) == 0;
	uint64_t bytes = 0;

	say(m, "%s%s", linkages[linkage],
		is_shared		    ? ".shared"
		: is_managed || below(m, 2) ? ".global"
					    : ".const");
	blank(m);
	if (align)
		say(m, ".align %u ", align);
	if (is_managed)
		say(m, ".attribute%s(.managed) ", below(m, 2) ? " " : "");
	if (vector > 1)
		say(m, ".v%u", vector);
	blank(m);
	say(m, "%s ", types[type].name);
	do
		bytes += say_declarator(m, types[type].bytes * vector, align, linkage == 3);
	while (below(m, 3) == 0 && (say(m, ","), true));
	say(m, ";");
	if (is_managed)
		m->managed_bytes += bytes;
	else if (!is_shared)
		m->device_bytes += bytes;
}

static void say_function(struct making *m)
{
	say(m,
		below(m, 2) ? ".visible .entry k%u(.param .u64 a)"
			    : ".func (.reg .b32 r) f%u (.reg .b32 a)",
		below(m, 100));
	blank(m);
	if (below(m, 3) == 0)
		say(m, ".maxntid 128, 1, 1\n");
	say(m, "{\n.reg .b32 %%r<5>;");
	for (unsigned i = below(m, 4); i > 0; i--) {
		say(m, "ld.global.v2.u32 {%%r1, %%r2}, [%%rd1 + %u];", i);
		blank(m);
		say(m, "L%u: @%%p1 bra L%u;\n{ .reg .b32 t; add.s32 t, %%r1, 0x%x; }\n", i, i, i);
		if (below(m, 3) == 0)
			say_variables(m);
	}
	say(m, "ret;}");
}

static void random_texts_are_counted_right(void **state)
{
	struct making *m = malloc(sizeof(*m));
	struct ptx ptx;

	(void)state;
	assert_non_null(m);
	for (unsigned run = 0; run < 5000; run++) {
		*m = (struct making){.seed = run * UINT64_C(1000003)};
		say(m, "%s", HEAD);
		for (unsigned i = below(m, 6); i > 0; i--) {
			if (below(m, 3))
				say_variables(m);
			else
				say_function(m);
			if (below(m, 2))
				blank(m);
		}
		if (!ptx_read(m->text, PTX_TO_ZERO, &ptx) || ptx.device_bytes != m->device_bytes ||
			ptx.managed_bytes != m->managed_bytes)
			print_message("%s\n", m->text);
		assert_true(ptx_read(m->text, PTX_TO_ZERO, &ptx));
		assert_int_equal(ptx.device_bytes, m->device_bytes);
		assert_int_equal(ptx.managed_bytes, m->managed_bytes);
	}
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_declared_is_counted),
		cmocka_unit_test(what_is_not_understood_is_not_empty),
		cmocka_unit_test(a_text_may_begin_with_blanks_a_mark_or_a_comment),
		cmocka_unit_test(nothing_may_follow_a_zero),
		cmocka_unit_test(functions_of_the_devices_runtime_are_seen),
		cmocka_unit_test(the_word_of_managed_variables_is_found),
		cmocka_unit_test(random_texts_are_counted_right),
	};

	return cmocka_run_group_tests_name("ptx", tests, NULL, NULL);
}
