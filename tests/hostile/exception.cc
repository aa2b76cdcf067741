/* SPDX-License-Identifier: Apache-2.0 */
/* The two functions of exception_left.c that only C++ can say. */
extern "C" void exception_throw(int signal);
extern "C" bool exception_is_caught(void (*work)(void));

void exception_throw(int)
{
	throw 1;
}

bool exception_is_caught(void (*work)(void))
{
	try {
		work();
	} catch (int) {
		return true;
	}
	return false;
}
