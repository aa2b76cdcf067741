/* SPDX-License-Identifier: Apache-2.0 */
/* What a loaded object was bound to, changed after the dynamic linker is done. */
#include "tenant/door/bindings.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const ElfW(Phdr) *
	find_segment(const struct dl_phdr_info *info, uint32_t type, uintptr_t address)
{
	uintptr_t at = address - info->dlpi_addr;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == type && at >= p->p_vaddr && at < p->p_vaddr + p->p_memsz)
			return p;
	}
	return NULL;
}

/* As the dynamic linker left it, and for a change also writable. */
int bindings_protect(
	const struct dl_phdr_info *info, const void *from, size_t bytes, bool is_writable)
{
	uintptr_t page = (uintptr_t)getpagesize(), start = (uintptr_t)from & ~(page - 1);
	uintptr_t end = ((uintptr_t)from + bytes + page - 1) & ~(page - 1);
	const ElfW(Phdr) *load = find_segment(info, PT_LOAD, (uintptr_t)from);
	const ElfW(Phdr) *constant = find_segment(info, PT_GNU_RELRO, (uintptr_t)from);
	int flags;

	if (!load)
		return -EFAULT;
	/* Of what is constant after relocation the last page stays writable where other data are in it, too. */
	if (constant &&
		end > ((info->dlpi_addr + constant->p_vaddr + constant->p_memsz) & ~(page - 1)))
		constant = NULL;
	flags = (load->p_flags & PF_R ? PROT_READ : 0) | (load->p_flags & PF_X ? PROT_EXEC : 0);
	if (is_writable || (load->p_flags & PF_W && !constant))
		flags |= PROT_WRITE;
	return mprotect((void *)start, end - start, flags) == 0 ? 0 : -errno;
}

int bindings_write(const struct dl_phdr_info *info, void *to, const void *from, size_t bytes)
{
	int r = bindings_protect(info, to, bytes, true);

	if (r < 0)
		return r;
	memcpy(to, from, bytes);
	bindings_protect(info, to, bytes, false);
	return 0;
}
