/* SPDX-License-Identifier: Apache-2.0 */
/* What kernel images tell: cubins made here, PTX, and things that are neither. */
#include "tenant/memory/image.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/cmocka_ready.h"

/* A cubin with code, data without a place in the file, and a call of one function it lacks. */
struct cubin {
	Elf64_Ehdr head;
	Elf64_Shdr section[5];
	Elf64_Sym symbol[2];
	char names[48];
};

static struct cubin cubin_calling(const char *function)
{
	struct cubin c = {
		.head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
			.e_shoff = offsetof(struct cubin, section),
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = 5},
		.section = {{0}, {.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC, .sh_size = 640},
			{.sh_type = SHT_NOBITS,
				.sh_flags = SHF_ALLOC | SHF_WRITE,
				.sh_size = UINT64_C(5) << 30},
			{.sh_type = SHT_SYMTAB,
				.sh_link = 4,
				.sh_offset = offsetof(struct cubin, symbol),
				.sh_size = sizeof(c.symbol)},
			{.sh_type = SHT_STRTAB,
				.sh_offset = offsetof(struct cubin, names),
				.sh_size = sizeof(c.names)}},
		.symbol = {{0}, {.st_name = 1, .st_shndx = SHN_UNDEF}},
	};

	snprintf(c.names + 1, sizeof(c.names) - 1, "%s", function);
	return c;
}

static struct image image_read(const void *data)
{
	struct image_source source;

	if (image_open(data, &source) < 0)
		return (struct image){.is_known = false};
	image_close(&source);
	return source.image;
}

static struct image image_read_file(const char *path)
{
	struct image_source source;

	if (image_open_file(path, &source) < 0)
		return (struct image){.is_known = false};
	image_close(&source);
	return source.image;
}

static void a_cubin_tells_its_sections_and_what_it_calls(void **state)
{
	struct cubin c = cubin_calling("malloc");
	struct image image = image_read(&c);

	(void)state;
	assert_true(image.is_known);
	assert_int_equal(image.device_bytes, (UINT64_C(5) << 30) + 640);
	assert_true(image.has_heap);
	assert_false(image.has_printf);
	c = cubin_calling("vprintf");
	image = image_read(&c);
	assert_false(image.has_heap);
	assert_true(image.has_printf);
	c = cubin_calling("mallocate");
	image = image_read(&c);
	assert_false(image.has_heap || image.has_printf);
}

/* Its names are the compiler's, and in a cubin that is linked with the toolkit's library those of what is left to the driver. */
static void a_cubin_that_launches_kernels_is_known_by_each_name(void **state)
{
	static const char *const names[] = {"cudaLaunchDevice", "cudaLaunchDeviceV2_ptsz",
		"cudaCDP2LaunchDeviceV2", "__cudaCDP2LaunchDeviceV2", "__cudaCDP1LaunchDeviceV2",
		"__cuda_syscall_cnpv2LaunchDevice", "__cuda_syscall_cnpv2GetDevice"};

	(void)state;
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct cubin c = cubin_calling(names[i]);
		struct image image = image_read(&c);

		assert_true(image.is_known && image.has_heap);
		assert_false(image.has_printf);
	}
}

static void a_name_that_does_not_end_is_none(void **state)
{
	struct cubin c = cubin_calling("malloc");

	(void)state;
	memset(c.names, 'm', sizeof(c.names));
	memcpy(c.names + sizeof(c.names) - 6, "malloc", 6);
	c.symbol[1].st_name = sizeof(c.names) - 6;
	assert_false(image_read(&c).has_heap);
}

static void managed_variables_are_told_apart(void **state)
{
	struct image image = image_read(".version 7.0\n.global .align 4 .b8 a[100];\n"
					".global .attribute(.managed) .align 4 .b8 b[3000];\n");

	(void)state;
	assert_int_equal(image.device_bytes, 100);
	assert_int_equal(image.managed_bytes, 3000);
}

static void sizes_that_overflow_are_the_largest(void **state)
{
	struct cubin c = cubin_calling("free");

	(void)state;
	c.section[2].sh_size = UINT64_MAX - 1;
	assert_int_equal(image_read(&c).device_bytes, UINT64_MAX);
	assert_int_equal(
		image_read(".version 7.0\n.global .b64 a[9223372036854775807];\n").device_bytes,
		UINT64_MAX);
}

static void ptx_tells_its_variables_and_what_it_calls(void **state)
{
	struct image image = image_read("// a comment\n.version 7.0\n"
					".extern .func (.param .b64 r) malloc (.param .b64 s);\n"
					".visible .global .align 4 .b8 a[100];\n"
					".global .align 16 .v4 .f32 b[2][3];\n"
					".global .u64 c = 5;\n"
					".entry k() { st.global.u32 [%rd1], 7; }\n");

	(void)state;
	assert_true(image.is_known);
	assert_int_equal(image.device_bytes, 100 + 2 * 3 * 16 + 8);
	assert_true(image.has_heap);
	assert_false(image.has_printf);
}

static void ptx_that_is_not_understood_is_unknown(void **state)
{
	struct image image = image_read(".version 7.0\n.global .b8 a[n];\n");

	(void)state;
	assert_false(image.is_known || image.hides_managed);
	image = image_read("#x\n.version 7.0\n.global .attribute(.managed) .b8 a[100];\n");
	assert_false(image.is_known);
	assert_true(image.hides_managed);
	image = image_read("\t.version 7.0\n.global .b8 a[0x10];\n");
	assert_true(image.is_known);
	assert_int_equal(image.device_bytes, 16);
}

static void a_cubin_tells_which_variables_are_managed(void **state)
{
	struct cubin c = cubin_calling("malloc");

	(void)state;
	c.symbol[0] = (Elf64_Sym){.st_other = 4, .st_size = UINT64_C(3) << 30, .st_shndx = 2};
	assert_int_equal(image_read(&c).managed_bytes, UINT64_C(3) << 30);
}

static void a_cubin_that_is_not_whole_is_unknown(void **state)
{
	struct cubin c = cubin_calling("malloc");

	(void)state;
	c.head.e_shnum = 0;
	assert_false(image_read(&c).is_known);
	c = cubin_calling("malloc");
	c.head.e_shentsize = 32;
	assert_false(image_read(&c).is_known);
	c = cubin_calling("malloc");
	c.section[2].sh_flags |= SHF_COMPRESSED;
	assert_false(image_read(&c).is_known);
	c = cubin_calling("malloc");
	c.section[3].sh_link = 9;
	assert_false(image_read(&c).is_known);
}

static void anything_else_is_unknown(void **state)
{
	uint32_t fat_binary[16] = {0xba55ed50};

	(void)state;
	assert_false(image_read(NULL).is_known);
	assert_false(image_read(fat_binary).is_known);
	assert_false(image_read_file("/nonexistent").is_known);
	assert_false(image_read_file("/dev/null").is_known);
}

static void a_copy_is_what_was_read(void **state)
{
	struct cubin c = cubin_calling("malloc");
	char text[] = ".version 7.0\n.global .b8 a[100];\n";
	uint32_t fat_binary[16] = {0xba55ed50};
	struct image_source source;

	(void)state;
	assert_int_equal(image_open(&c, &source), 0);
	assert_ptr_equal(source.data, source.copy);
	assert_ptr_not_equal(source.data, &c);
	assert_memory_equal(source.data, &c, sizeof(c));
	image_close(&source);
	assert_int_equal(image_open(text, &source), 0);
	assert_ptr_not_equal(source.data, text);
	assert_string_equal(source.data, text);
	image_close(&source);
	/* Nothing is known of it, so nothing is lost where it changes. */
	assert_int_equal(image_open(fat_binary, &source), 0);
	assert_ptr_equal(source.data, fat_binary);
	assert_null(source.copy);
	image_close(&source);
}

static void what_cannot_be_copied_is_refused(void **state)
{
	struct cubin c = cubin_calling("malloc");
	struct image_source source;

	(void)state;
	c.section[1].sh_size = UINT64_MAX - 1;
	assert_int_equal(image_open(&c, &source), -EFBIG);
	c.section[1].sh_size = UINT64_C(1) << 31;
	assert_int_equal(image_open(&c, &source), -EFBIG);
	/* Nothing is mapped so far behind the stack. */
	c.section[1].sh_size = UINT64_C(1) << 29;
	assert_int_equal(image_open(&c, &source), -EFAULT);
	assert_int_equal(image_open_file("/nonexistent", &source), -ENOENT);
}

static void a_section_table_that_cannot_be_read_is_refused(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *pages =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct cubin c = cubin_calling("malloc");
	struct image_source source;
	Elf64_Ehdr *head;
	uint32_t *wrapper;

	(void)state;
	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
	head = (Elf64_Ehdr *)pages;
	*head = c.head;
	head->e_shoff = page;
	assert_int_equal(image_open(pages, &source), -EFAULT);
	/* Half of the table, and half of the head. */
	head->e_shoff = page - 2 * sizeof(Elf64_Shdr);
	assert_int_equal(image_open(pages, &source), -EFAULT);
	memcpy(pages + page - 32, &c.head, 32);
	assert_int_equal(image_open(pages + page - 32, &source), -EFAULT);
	/* The wrapper of a fat binary is shorter than the head of an ELF image. */
	wrapper = (uint32_t *)(pages + page - 24);
	*wrapper = 0x466243b1;
	assert_int_equal(image_open(wrapper, &source), 0);
	assert_null(source.copy);
	munmap(pages, 2 * page);
}

static void a_table_of_many_sections_is_read_whole(void **state)
{
	struct {
		Elf64_Ehdr head;
		Elf64_Shdr section[67];
	} c = {.head = cubin_calling("").head};
	struct image_source source;

	(void)state;
	c.head.e_shoff = sizeof(c.head);
	c.head.e_shnum = 67;
	assert_int_equal(image_open(&c, &source), 0);
	assert_memory_equal(source.copy, &c, sizeof(c));
	image_close(&source);
	for (unsigned i = 0; i < 67; i++) {
		c.section[i].sh_size = UINT64_C(1) << 31;
		assert_int_equal(image_open(&c, &source), -EFBIG);
		c.section[i].sh_size = 0;
	}
}

static void a_file_is_never_read_behind_its_end(void **state)
{
	struct cubin c = cubin_calling("malloc");
	char path[] = "/tmp/image-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	for (size_t length = sizeof(c); length > 0; length -= length > 100 ? 61 : 7) {
		struct image image;

		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, &c, length, 0), length);
		image = image_read_file(path);
		assert_int_equal(image.is_known, length == sizeof(c));
		if (length < 10)
			break;
	}
	c.head.e_shoff = UINT64_MAX - 8;
	c.section[3].sh_offset = UINT64_MAX - 8;
	assert_int_equal(pwrite(fd, &c, sizeof(c), 0), sizeof(c));
	assert_false(image_read_file(path).is_known);
	unlink(path);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cubin_tells_its_sections_and_what_it_calls),
		cmocka_unit_test(a_cubin_that_launches_kernels_is_known_by_each_name),
		cmocka_unit_test(a_name_that_does_not_end_is_none),
		cmocka_unit_test(managed_variables_are_told_apart),
		cmocka_unit_test(sizes_that_overflow_are_the_largest),
		cmocka_unit_test(ptx_tells_its_variables_and_what_it_calls),
		cmocka_unit_test(ptx_that_is_not_understood_is_unknown),
		cmocka_unit_test(a_cubin_tells_which_variables_are_managed),
		cmocka_unit_test(a_cubin_that_is_not_whole_is_unknown),
		cmocka_unit_test(anything_else_is_unknown),
		cmocka_unit_test(a_copy_is_what_was_read),
		cmocka_unit_test(what_cannot_be_copied_is_refused),
		cmocka_unit_test(a_section_table_that_cannot_be_read_is_refused),
		cmocka_unit_test(a_table_of_many_sections_is_read_whole),
		cmocka_unit_test(a_file_is_never_read_behind_its_end),
	};

	return cmocka_run_group_tests_name("image", tests, NULL, NULL);
}
