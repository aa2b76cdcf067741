#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checkers find what they are for: each runs on a small tree with one fault planted in it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import metrics

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = "/* SPDX-License-Identifier: Apache-2.0 */\n/* A file. */\n"


class Tree(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)

    def put(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as f:
            f.write(text)
        return full

    def run_tool(self, tool, *args):
        run = subprocess.run([sys.executable, os.path.join(HERE, tool), *args],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             check=False)
        return run.returncode, run.stdout

    def finds(self, tool, words, *args):
        rc, said = self.run_tool(tool, *args, "--root", self.root)
        self.assertEqual(rc, 1, said)
        self.assertIn(words, said)

    def is_content(self, tool, *args):
        rc, said = self.run_tool(tool, *args, "--root", self.root)
        self.assertEqual((rc, "Traceback" in said), (0, False), said)


class Layers(Tree):
    def test_an_arrow_that_points_up_is_found(self):
        self.put("src/region/region.h", TOP)
        self.put("src/base/err.c", TOP + '#include "region/region.h"\n')
        self.finds("check_layers.py", "src/base/err.c:3: base includes src/region/region.h")

    def test_an_arrow_that_points_down_is_fine(self):
        self.put("src/base/err.h", TOP)
        self.put("src/region/region.c", TOP + '#include "base/err.h"\n#include <unistd.h>\n')
        self.is_content("check_layers.py")

    def test_the_simulated_node_sees_the_abi_alone(self):
        self.put("src/gpu/abi/cuda.h", TOP)
        self.put("src/gpu/driver.h", TOP)
        self.put("sim/cuda/memory.c", TOP + '#include "gpu/abi/cuda.h"\n')
        self.is_content("check_layers.py")
        self.put("sim/cuda/memory.c", TOP + '#include "gpu/driver.h"\n')
        self.finds("check_layers.py", "base/cleanup.h and sim/ are open")

    def test_the_layers_of_the_simulated_node_are_kept(self):
        self.put("sim/cuda/entry.def", TOP)
        self.put("sim/cuda/model/time/timeline.h", TOP)
        self.put("sim/cuda/api/entry.h", TOP)
        self.put("sim/machine/call.c", TOP + '#include "sim/cuda/entry.def"\n')
        self.put("sim/cuda/model/memory/heap.c", TOP + '#include "sim/cuda/model/time/timeline.h"\n')
        self.is_content("check_layers.py")
        self.put("sim/cuda/model/memory/heap.c", TOP + '#include "sim/cuda/api/entry.h"\n')
        self.finds("check_layers.py", "sim/cuda/model/memory includes sim/cuda/api/entry.h; it may include")

    def test_memory_and_compute_know_nothing_of_each_other(self):
        self.put("src/tenant/compute/gate.h", TOP)
        self.put("src/tenant/slice/state.h", TOP)
        self.put("src/tenant/memory/pools.c", TOP + '#include "tenant/slice/state.h"\n')
        self.is_content("check_layers.py")
        self.put("src/tenant/memory/pools.c", TOP + '#include "tenant/compute/gate.h"\n')
        self.finds("check_layers.py", "tenant/memory includes src/tenant/compute/gate.h; it may include base")

    def test_only_the_oom_killer_kills(self):
        for name in ("memory/oom", "slice/init"):
            self.put("src/tenant/%s.c" % name, TOP + "void f(void)\n{\n\tkill(1, 9);\n}\n")
        self.put("src/tenant/slice/quota.c", TOP + "/* nothing */\n")
        self.finds("check_layers.py", "src/tenant/slice/init.c:5: kill() ends the host process")
        self.put("src/tenant/slice/init.c", TOP + "/* nothing */\n")
        self.put("src/tenant/memory/oom.c", TOP + "void f(void)\n{\n\traise(9);\n}\n")
        self.finds("check_layers.py", "src/tenant/memory/oom.c:5: raise() ends the host process")

    def test_signals_are_taken_in_one_file(self):
        for name in ("compute/signals", "slice/init"):
            self.put("src/tenant/%s.c" % name, TOP + "void f(void)\n{\n\tsigaction(1, 0, 0);\n}\n")
        self.finds("check_layers.py", "src/tenant/slice/init.c:5: sigaction() changes the host process")
        self.put("src/tenant/slice/init.c", TOP + "/* nothing */\n")
        self.is_content("check_layers.py")

    def test_events_are_made_in_one_file(self):
        for name in ("driver/own_events", "compute/events"):
            self.put("src/tenant/%s.c" % name, TOP + "void f(void)\n{\n\tcuda.cuEventCreate(0, 0);\n}\n")
        self.finds("check_layers.py", "src/tenant/compute/events.c:5: cuEventCreate() makes or ends")
        self.put("src/tenant/compute/events.c", TOP + "/* nothing */\n")
        self.is_content("check_layers.py")

    def test_the_environment_is_read_in_one_file(self):
        for name in ("tenant/slice/environment", "node/machine"):
            self.put("src/%s.c" % name, TOP + "char *f(void)\n{\n\treturn getenv(\"A\");\n}\n")
        self.is_content("check_layers.py")
        self.put("src/tenant/slice/quota.c", TOP + "void f(void)\n{\n\tread_with(getenv);\n}\n")
        self.finds("check_layers.py", "src/tenant/slice/quota.c:5: getenv reads the environment")
        self.put("src/tenant/slice/quota.c", TOP + "/* nothing */\n")
        self.put("src/region/turn.c", TOP + "void f(void)\n{\n\tg(environ[0]);\n}\n")
        self.finds("check_layers.py", "src/region/turn.c:5: environ reads the environment")

    def test_a_guest_that_exits_is_found(self):
        self.put("src/tenant/slice/init.c", TOP + "void f(void)\n{\n\texit(1);\n}\n")
        self.finds("check_layers.py", "src/tenant/slice/init.c:5: exit() ends the host process")

    def test_words_in_comments_strings_and_longer_names_are_fine(self):
        self.put("src/tenant/slice/init.c", TOP + "/* never exit() */\nconst char *a = \"exit(1)\";\n"
                 "void g(void)\n{\n\tthread_exit(1);\n\ts->kill(2);\n}\n")
        self.is_content("check_layers.py")

    def test_a_file_of_no_folder_of_the_tenant_library_is_found(self):
        self.put("src/tenant/init.h", TOP)
        self.finds("check_layers.py", "module 'tenant' has no row in tools/layers.py")

    def test_a_decision_that_takes_memory_is_found(self):
        self.put("src/policy/fit.c", TOP + "void *f(void)\n{\n\treturn malloc(1);\n}\n")
        self.finds("check_layers.py", "malloc() takes memory")

    def test_a_decision_that_remembers_is_found(self):
        self.put("src/policy/fit.c", TOP + "static int last;\n")
        self.finds("check_layers.py", "keeps mutable data")
        self.put("src/policy/fit.c", TOP + "static const int table[] = {1};\n"
                 "static int f(int a)\n{\n\treturn a;\n}\n")
        self.is_content("check_layers.py")

    def test_a_second_definition_of_a_driver_type_is_found(self):
        self.put("src/region/x.h", TOP + "typedef int CUdevice;\n")
        self.finds("check_layers.py", "CUdevice is NVIDIA's to define")


@unittest.skipUnless(shutil.which("cc") or shutil.which("gcc"), "no C compiler")
class Hooks(Tree):
    HOOK = "src/tenant/hooks/hook_memory.c"

    def put_hook(self, body, more="", params="int *pointer"):
        self.put(self.HOOK, TOP + "struct { int (*alloc)(int *), (*with)(const int *); } cuda;\n%s"
                 "static int cuMemAlloc_body(%s)\n{\n%s\n}\n" % (more, params, body))

    def test_an_answer_that_is_read_in_the_programs_memory_is_found(self):
        self.put_hook("\tint r = cuda.alloc(pointer);\n\treturn r ? r : *pointer;")
        self.finds("check_hooks.py", "cuMemAlloc: 'pointer' is read and given to the driver")
        self.put_hook("\treturn keep(cuda.alloc(pointer), pointer);",
                      "static int keep(int r, const int *made)\n{\n\treturn r + made[0];\n}\n")
        self.finds("check_hooks.py", "'pointer' is read and given to the driver")

    def test_an_answer_of_nvml_is_found_as_well(self):
        self.put(self.HOOK, TOP + "struct { int (*ask)(int *); } nvml;\nstatic int nvmlDeviceGetIndex_body(int *to)\n"
                 "{\n\tint r = nvml.ask(to);\n\n\treturn r ? r : *to;\n}\n")
        self.finds("check_hooks.py", "nvmlDeviceGetIndex: 'to' is read and given to the driver")

    def test_a_variable_of_the_hook_is_fine(self):
        self.put_hook("\tint made, r;\n\n\tif (!pointer)\n\t\treturn cuda.alloc(pointer);\n"
                      "\tr = cuda.alloc(&made);\n\tif (r == 0)\n\t\t*pointer = made;\n\treturn r;")
        self.is_content("check_hooks.py")

    def test_a_parameter_that_is_read_twice_is_found(self):
        self.put_hook("\treturn *wanted > 1 ? *wanted : 0;", params="const int *wanted")
        self.finds("check_hooks.py", "'wanted' is read more than once")
        self.put_hook("\tif (*wanted > 1)\n\t\treturn 2;\n\treturn cuda.with(wanted);",
                      params="const int *wanted")
        self.finds("check_hooks.py", "'wanted' is read and given to the driver")

    def test_a_copy_is_the_hooks_own(self):
        self.put_hook("\tCOPY(wanted);\n\tif (*wanted > 1)\n\t\treturn 2;\n"
                      "\treturn cuda.with(wanted);",
                      "#define COPY(p) ((p) = (__typeof__(*(p))[1]){*(p)})\n", "const int *wanted")
        self.is_content("check_hooks.py")

    def test_what_cannot_be_followed_is_found(self):
        self.put_hook("\tstruct call c = {pointer};\n\n\treturn run(&c);")
        self.finds("check_hooks.py", "'pointer' is used in a way that cannot be followed")


class Links(Tree):
    def links(self, output, libraries=(), **sources):
        """Compiles sources ({path with _ for /: text}) and says in a build folder that output has them."""
        build = os.path.join(self.root, "build")
        os.makedirs(os.path.join(build, "meson-info"), exist_ok=True)
        rule = "STATIC_LINKER" if output.endswith(".a") else "c_LINKER"
        objects = []
        for path, text in sources.items():
            source = self.put(path.replace("__", "/") + ".c", text)
            objects.append("%s.p/%s.o" % (output, os.path.basename(source)))
            out = os.path.join(build, objects[-1])
            os.makedirs(os.path.dirname(out), exist_ok=True)
            subprocess.run([shutil.which("cc") or "gcc", "-w", "-c", "-fPIC", "-o", out, source], check=True)
            self.commands.append({"directory": build, "file": source, "output": objects[-1]})
        self.ninja += "build %s: %s %s | dep.so\n LINK_ARGS = -Wl,--start-group %s\n\n" % (
            output, rule, " ".join(objects), " ".join(libraries))
        with open(os.path.join(build, "build.ninja"), "w", encoding="utf-8") as f:
            f.write(self.ninja)
        with open(os.path.join(build, "compile_commands.json"), "w", encoding="utf-8") as f:
            json.dump(self.commands, f)
        with open(os.path.join(build, "meson-info/meson-info.json"), "w", encoding="utf-8") as f:
            json.dump({"directories": {"source": self.root}}, f)

    def setUp(self):
        super().setUp()
        self.ninja, self.commands = "", []

    def accepts(self):
        rc, said = self.run_tool("check_links.py", os.path.join(self.root, "build"))
        self.assertEqual((rc, said), (0, ""))

    def refuses(self, words):
        rc, said = self.run_tool("check_links.py", os.path.join(self.root, "build"))
        self.assertEqual(rc, 1, said)
        self.assertIn(words, said)

    def test_calls_downwards_are_fine(self):
        self.links("src/base/libbase.a", src__base__err="int err(void) { return 1; }")
        self.links("src/cli/vgpu", ["src/base/libbase.a"],
                   src__cli__main="int err(void); int main(void) { return err() + getpid(); }")
        self.accepts()

    def test_a_call_upwards_is_found_without_an_include(self):
        self.links("src/base/libbase.a", src__base__err="int place(void); int err(void) { return place(); }")
        self.links("src/cli/vgpu", ["src/base/libbase.a"], src__cli__place="int place(void) { return 1; }")
        self.refuses("src/base/err.c:1: uses place of src/cli/place.c; base may use libc alone")

    def test_data_counts_as_a_call(self):
        self.links("src/tenant/libvgpu.so", src__tenant__memory__pools="extern int gates; int *p = &gates;",
                   src__tenant__compute__gate="int gates = 1;")
        self.refuses("src/tenant/memory/pools.c:1: uses gates of src/tenant/compute/gate.c")

    def test_a_circle_is_found_with_a_way_round(self):
        self.links("sim/tool/vgpu-sim", sim__tool__a="void b(void); void a(void) { b(); }",
                   sim__tool__b="void c(void); void b(void) { c(); }",
                   sim__tool__c="void a(void); void c(void) { a(); }")
        self.refuses("sim/tool/b.c calls c of sim/tool/c.c, sim/tool/c.c calls a of sim/tool/a.c")

    def test_a_circle_between_the_files_of_a_library_that_nothing_links_is_found(self):
        self.links("src/cli/vgpu", src__cli__main="int main(void) { return 0; }")
        self.links("src/gpu/libgpu.a", src__gpu__a="void b(void); void a(void) { b(); }",
                   src__gpu__b="void a(void); void b(void) { a(); }")
        self.refuses("src/gpu/a.c:1: is on a circle with src/gpu/b.c")

    def test_equal_names_in_two_programs_are_two_things(self):
        self.links("sim/cuda/libcuda.so.1", sim__cuda__api__device="int cuInit(void) { return 0; }")
        self.links("src/cli/vgpu", src__cli__main="int cuInit(void); int main(void) { return cuInit(); }")
        self.accepts()

    def test_one_circle_lies_in_the_thing_itself(self):
        self.links("src/tenant/libvgpu.so",
                   src__tenant__door__swap="int hook(void); int (*t)(void) = hook;",
                   src__tenant__door__entry_procaddr="extern int (*t)(void); int hook(void) { return t(); }")
        self.accepts()
        self.links("src/cli/vgpu", src__tenant__door__swap="int hook(void); int (*t)(void) = hook;",
                   src__tenant__door__entry_procaddr="extern int (*t)(void); int hook(void) { return t(); }")
        self.refuses("src/tenant/door/entry_procaddr.c:1: is on a circle")

    def test_an_allowed_circle_that_is_gone_is_found(self):
        self.links("src/tenant/libvgpu.so", src__tenant__door__swap="int t;")
        self.refuses("src/tenant/door/entry_procaddr.c:1: is on no circle with src/tenant/door/swap.c any more")

    def test_a_name_that_only_its_own_file_uses_is_found(self):
        self.links("src/base/libbase.a",
                   src__base__err="int why(void) { return 1; } int err(void) { return why(); }")
        self.links("src/cli/vgpu", ["src/base/libbase.a"],
                   src__cli__main="int err(void); int main(void) { return err(); }")
        self.refuses("src/base/err.c:1: why is used by no other file and by no test; make it static")

    def test_a_name_that_a_test_uses_is_fine(self):
        self.links("src/base/libbase.a", src__base__err="int why = 1; int err(void) { return why; }")
        self.links("src/cli/vgpu", ["src/base/libbase.a"],
                   src__cli__main="int err(void); int main(void) { return err(); }")
        self.links("tests/unit/test_err", ["src/base/libbase.a"],
                   tests__unit__err="extern int why; int main(void) { return why; }")
        self.accepts()

    def test_an_exported_name_is_fine(self):
        self.links("sim/cuda/libcuda.so.1", sim__cuda__api__device="int cuInit(void) { return 0; }")
        self.refuses("cuInit is used by no other file")
        subprocess.run([shutil.which("cc") or "gcc", "-shared", "-o", "libcuda.so.1",
                        "libcuda.so.1.p/device.c.o"],
                       cwd=os.path.join(self.root, "build/sim/cuda"), check=True)
        self.accepts()

    def test_a_folder_without_programs_is_no_success(self):
        self.links("tests/unit/test_err", tests__unit__err="int main(void) { return 0; }")
        self.refuses("no program of src/ or sim/ is built here")


class Files(Tree):
    def test_each_fault_is_found(self):
        for text, words in [
                ("int a;\n", "no licence line"),
                ("/* SPDX-License-Identifier: Apache-2.0 */\nint a;\n", "no title"),
                (TOP + "int a; // why\n", "x.c:3: a // comment"),
                (TOP + "int a; \n", "white space at the end"),
                (TOP + "/* TO" + "DO later */\n", "without an issue"),
                (TOP + "int a;", "no newline"),
                (TOP + "int a;\n" * 1000, "1002 lines")]:
            with self.subTest(words):
                self.put("src/base/x.c", text)
                self.finds("check_files.py", words)

    def test_a_header_without_a_guard_is_found(self):
        self.put("src/base/x.h", TOP)
        self.finds("check_files.py", "no include guard")

    def test_a_clean_file_with_a_url_in_a_string_is_fine(self):
        self.put("src/base/x.c", TOP + 'const char *a = "http://x";\n/* http://y */\n')
        self.is_content("check_files.py")


class Models(unittest.TestCase):
    def test_a_model_that_is_not_there_is_no_success(self):
        for names in (["nonsense"], ["turn", "nonsense"]):
            run = subprocess.run([os.path.join(HERE, "check_models.sh"), *names], stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, check=False)
            self.assertEqual(run.returncode, 2, run.stdout)
            self.assertIn("there is no model 'nonsense'; there are: ledger ", run.stdout)


class Docs(Tree):
    TABLE = TOP + 'OPTION(limit, "VGPU_LIMIT", SIZE,\n\t"how much, " "in all")\n'

    def test_a_stale_page_is_found_and_made_anew(self):
        self.put("src/policy/options.def", self.TABLE)
        self.finds("check_docs.py", "docs/generated/options.md:1: out of date")
        self.is_content("gen_docs.py")
        self.is_content("check_docs.py")
        with open(os.path.join(self.root, "docs/generated/options.md"), encoding="utf-8") as f:
            self.assertIn("| `VGPU_LIMIT` | size | how much, in all |", f.read())

    def test_a_hook_is_shown_with_its_body(self):
        self.put("src/gpu/cuda.def", TOP + "\n/* Beginning */\nHOOK(cuInit)\n"
                 "CALL(cuCtxGetDevice)\n#undef HOOK\n")
        self.put("src/tenant/hook_init.c", TOP + "\n/* Starts all. Once. */\n"
                 "HOOK_BODY(cuInit, unsigned, flags)\n{\n}\n")
        self.is_content("gen_docs.py")
        with open(os.path.join(self.root, "docs/generated/hooks.md"), encoding="utf-8") as f:
            text = f.read()
        self.assertIn("| `cuInit` | Beginning | [hook_init.c](../../src/tenant/hook_init.c) | "
                      "Starts all |", text)
        self.assertIn("`cuCtxGetDevice`", text)

    def test_both_forms_of_a_hook_are_shown_with_their_body(self):
        self.put("src/gpu/cuda.def", TOP + "HOOK(cuMemFreeAsync)\nHOOK(cuMemFreeAsync_ptsz)\n")
        self.put("src/tenant/hook_pool.c", TOP +
                 "\nHOOK_FORMS(cuMemFreeAsync, _ptsz, CUstream, stream)\n{\n}\n")
        self.is_content("gen_docs.py")
        with open(os.path.join(self.root, "docs/generated/hooks.md"), encoding="utf-8") as f:
            text = f.read()
        for symbol in ("cuMemFreeAsync", "cuMemFreeAsync_ptsz"):
            self.assertRegex(text, r"\| `%s` \|.*\[hook_pool.c\]" % symbol)

    def test_all_widths_of_a_hook_are_shown_with_their_body(self):
        self.put("src/gpu/cuda.def", TOP + "HOOK(cuMemsetD8)\nHOOK(cuMemsetD8_v2_ptds)\n")
        self.put("src/tenant/hook_fill.c", TOP + "\nBULK_WIDTHS(cuMemsetD8, _v2, _ptds, ROW)\n")
        self.is_content("gen_docs.py")
        with open(os.path.join(self.root, "docs/generated/hooks.md"), encoding="utf-8") as f:
            text = f.read()
        for symbol in ("cuMemsetD8", "cuMemsetD8_v2_ptds"):
            self.assertRegex(text, r"\| `%s` \|.*\[hook_fill.c\]" % symbol)

    def test_a_link_that_leads_nowhere_is_found(self):
        self.put("docs/a.md", "# A\n\n[b](b.md) and [site](https://example.com)\n")
        self.finds("check_docs.py", "docs/a.md:3: the reader is sent to b.md")

    def test_a_comment_that_names_no_page_is_found(self):
        self.put("src/base/x.c", TOP + "\n/* see docs/" + "none.md */\n")
        self.finds("check_docs.py", "src/base/x.c:4: the reader is sent to docs/none.md")

    def test_a_command_that_is_none_is_found(self):
        self.put("src/cli/commands.def", TOP + 'COMMAND(list, command_list, "[--all]", "shows")\n')
        self.put("docs/a.md", "# A\n\n`vgpu list --all --ever`, `vgpu lost`\n")
        self.is_content("gen_docs.py")
        self.finds("check_docs.py", "docs/a.md:3: the reader is sent to --ever of `vgpu`")
        self.finds("check_docs.py", "docs/a.md:3: the reader is sent to lost of `vgpu`")

    def test_a_metric_that_no_program_tells_is_found(self):
        self.put("src/node/slice_metrics.def", TOP + 'LABELS(S, "slice user?")\nMETRIC(a, "gauge", "bytes", "vgpu_slice_a_bytes", "S kind", "a")\n')
        self.put("deploy/alerts.yaml", '  - alert: A\n    expr: "sum by (slice, kind) (vgpu_slice_a_bytes) > 1"\n'
                 '  - alert: B\n    expr: "vgpu_slice_a_bytes{pod=\\"p\\"} + on (user) vgpu_slice_b_bytes"\n')
        self.put("deploy/grafana-dashboard.json", '{"templating": {"list": []}, "panels": [{"targets": [\n'
                 '{"expr": "vgpu_slice_a_bytes", "legendFormat": "{{user}} {{gpu}}"}]}]}')
        self.put("docs/a.md", "# A\n\n`vgpu_slice_*`, `vgpu_slice_a_bytes`, `vgpu_slice_c_bytes`\n")
        self.put("src/node/x.c", TOP + '\nint x = f("vgpu_slice_a_bytes ");\n')
        self.is_content("gen_docs.py")
        for words in ("deploy/alerts.yaml:4: the reader is sent to the metric vgpu_slice_b_bytes",
                      "deploy/alerts.yaml:4: the reader is sent to the label pod of vgpu_slice_a_bytes, vgpu_slice_b_bytes",
                      "deploy/grafana-dashboard.json:2: the reader is sent to the label gpu of vgpu_slice_a_bytes",
                      "docs/a.md:3: the reader is sent to the metric vgpu_slice_c_bytes",
                      "src/node/x.c:4: the reader is sent to the metric vgpu_slice_a_bytes"):
            self.finds("check_docs.py", words)
        self.assertEqual(metrics.wrong_in_scrape(self.root, "vgpu", "# HELP vgpu_slice_a_bytes b\n# TYPE vgpu_slice_a_bytes gauge\n"
                                                 'vgpu_slice_a_bytes{slice="a\\",pod=\\"",pod="p"} 1\nvgpu_slice_b 1\n'),
                         ["vgpu_slice_a_bytes has the label pod", "vgpu_slice_a_bytes is told as gauge: b",
                          "vgpu_slice_a_bytes lacks the label kind", "vgpu_slice_b is in no table"])

    def test_a_defect_that_no_test_names_is_found(self):
        head = "# D\n\n| | theirs | ours | shown by |\n|---|---|---|---|\n"
        self.put("tests/plugin/differences.c", TOP + 'DIFFERENCE("cfg-a cfg-b", "D2: so")\n')
        self.put("tests/plugin/vectors/plugin.jsonl", '{"id": "cfg-c", "defect": "D3"}\n')
        self.put("tests/plugin/test_a.c", TOP + "\n/* D1: why. */\nstatic void one(void **state)\n{\n}\n\n/* D10. */\nstatic void other(void **state)\n{\n}\n")
        good = "| D1 | x | y | `test_a: one`, `other` |\n| D2 | x | y | `test_a` (`cfg-a`) |\n| D3 | x | y | `test_a: other`, `cfg-*` |\n| | x | y | `test_a: other` |\n"
        self.put("docs/plugin-defects.md", head + good)
        self.is_content("gen_docs.py")
        self.is_content("check_docs.py")
        for bad, said in (("| D1 | x | y | `test_a: other` |\n", "no test of this row names D1"), ("| | x | y | `test_a: three` |\n", "test_a has no test three"),
                          ("| | x | y | `test_b: one` |\n", "test_b has no test one"), ("| D2 | x | y | `test_a` (`cfg-c`) |\n", "names D2")):
            self.put("docs/plugin-defects.md", head + good + bad)
            self.finds("check_docs.py", "docs/plugin-defects.md:9: ")
            self.finds("check_docs.py", said)

    def test_commands_in_pages_for_users_are_known(self):
        for path, text in (("Makefile", "all: x ## y\nimage:\n\tbuild/image.tar\n"), ("tools/image.py", ""), ("examples/a.yaml", "hami.io/known: 1\n"),
                           ("sim/tool/command.def", TOP + 'COMMAND(start, "", "starts")\n'), ("src/scheduler/flags.def", 'FLAG(a, "http_bind", 1)\n'),
                           ("src/plugin/config/flags.def", ""), ("src/monitor/main.c", TOP), ("tests/t.py", 'run("kubectl", "apply")\nmake all\n')):
            self.put(path, text)
        good = ("<!-- run by tests/t.py -->\n```sh\nmake all\nkubectl apply -f examples/a.yaml\n```\n"
                "<!-- not run: it needs a card -->\n```console\n# ctr -n x import build/image.tar\n$ docker run --gpus all IMAGE --any\n```\n"
                "```sh\ncat >/a <<END\nsome words\nEND\nsudo vgpu-sim start && vgpu-scheduler --http_bind x\n```\n`kubectl get node NODE`, `hami.io/known`\n")
        self.put("README.md", good)
        self.is_content("gen_docs.py")
        self.is_content("check_docs.py")
        for bad, said in (("```\nmake all\n```\n", "README.md:2: a block in no language"), ("```sh\nmake none\n```\n", "make none: no such target"),
                          ("```sh\nif\n```\n", "bash does not read it"), ("```sh\nvgpu-sim end\n```\n", "vgpu-sim end: no such command"),
                          ("```console\n$ vgpu-scheduler --what\n```\n", "vgpu-scheduler has no --what"), ("`kubectl get gpus`\n", "kind gpus is not known"),
                          ("```sh\nkubectl apply -f examples/b.yaml\n```\n", "examples/b.yaml is not there"), ("`hami.io/other`\n", "no program knows hami.io/other"),
                          ("<!-- run by tests/t.py -->\n```sh\nhelm install x\n```\n", "tests/t.py does not run helm install x"),
                          ("<!-- not run: no -->\n```sh\nmake all\n```\n", "no reason is given"), ("```sh\nother x\n```\n", "the program other is not known")):
            self.put("README.md", bad)
            self.finds("check_docs.py", said)


class Coverage(Tree):
    def put_all(self, table, hooks="HOOK(cuInit)", names="cuInit cuMemAlloc_v2"):
        self.put("src/gpu/coverage.def", TOP + table)
        self.put("src/gpu/cuda.def", TOP + hooks + "\n")
        self.put("tests/gpu/exports/cuda.txt", "# names\n" + "\n".join(names.split()) + "\n")

    def test_a_table_that_names_everything_is_fine(self):
        self.put_all('MEMORY("first", cuInit)\nMEMORY("by 2 MiB", cuMemAlloc)\n',
                     hooks="HOOK(cuInit)\nHOOK(cuMemAlloc_v2)")
        self.is_content("check_coverage.py")

    def test_a_form_that_is_to_be_hooked_and_is_not_is_found(self):
        for kind in ("MEMORY", "COMPUTE"):
            self.put_all('MEMORY("first", cuInit)\n%s("a copy", cuMemcpy)\n' % kind,
                         hooks="HOOK(cuInit)\nHOOK(cuMemcpy)", names="cuInit cuMemcpy cuMemcpy_ptds")
            self.finds("check_coverage.py", "src/gpu/coverage.def:4: cuMemcpy_ptds is %s, and is "
                       "not hooked" % kind)

    def test_a_function_without_a_row_is_found(self):
        self.put_all('MEMORY("first", cuInit)\n')
        self.finds("check_coverage.py", "no row names cuMemAlloc_v2")

    def test_a_hook_without_a_row_is_found(self):
        self.put_all('MEMORY("by 2 MiB", cuMemAlloc)\n', names="cuMemAlloc_v2")
        self.finds("check_coverage.py", "src/gpu/cuda.def:3: cuInit is hooked, and no row")

    def test_a_hook_that_is_called_harmless_is_found(self):
        self.put_all('HARMLESS("asks", cuInit, cuMemAlloc)\n')
        self.finds("check_coverage.py", "cuInit is hooked, so it is not HARMLESS")

    def test_a_row_for_nothing_or_twice_is_found(self):
        self.put_all('MEMORY("first", cuInit, cuMemAlloc, cuMemAllok)\n')
        self.finds("check_coverage.py", "no driver that we know exports cuMemAllok")
        self.put_all('MEMORY("first", cuInit, cuMemAlloc)\nVIEW("shows", cuInit)\n')
        self.finds("check_coverage.py", "src/gpu/coverage.def:4: cuInit is classified twice")

    def test_a_simulated_function_that_does_not_exist_is_found(self):
        self.put_all('MEMORY("first", cuInit, cuMemAlloc)\n')
        self.put("sim/cuda/entry.def", TOP + "ENTRY(cuInit, cuInit, 2000, BOTH)\n"
                 "ENTRY(cuInti, cuInti, 2000, BOTH)\n")
        self.put("sim/cuda/unsupported.def", TOP + "UNSUPPORTED(cuMemAlloc_v2, cuMemAlloc, 3020, "
                 "BOTH)\n")
        self.finds("check_coverage.py", "sim/cuda/entry.def:4: no driver that we know exports "
                   "cuInti")

    def test_a_simulated_function_that_is_missing_or_there_twice_is_found(self):
        self.put_all('MEMORY("first", cuInit, cuMemAlloc)\n')
        self.put("sim/cuda/entry.def", TOP + "ENTRY(cuInit, cuInit, 2000, BOTH)\n")
        self.put("sim/cuda/unsupported.def", TOP + "UNLISTED(cuInit)\n")
        self.finds("check_coverage.py", "sim/cuda/unsupported.def:3: cuInit has a row already")
        self.finds("check_coverage.py", "the driver exports cuMemAlloc_v2, and the simulated")

    def test_the_page_says_what_is_hooked_and_what_is_not(self):
        self.put_all('MEMORY("by 2 MiB", cuMemAlloc)\nHARMLESS("asks", cuInit)\n',
                     hooks="HOOK(cuMemAlloc_v2)", names="cuInit cuMemAlloc cuMemAlloc_v2")
        self.put("src/tenant/hooks/hook_memory.c", TOP + "\nHOOK_BODY(cuMemAlloc_v2, int, a)\n{\n}\n")
        self.put("tests/tenant/client_memory.c", TOP + "\nstatic int run_alloc(int a)\n{\n"
                 "\treturn cu->cuMemAlloc_v2(a);\n}\n\nstatic struct word w[] = {\n"
                 '\t{"alloc", 2, run_alloc, "NAME SIZE"},\n};\n')
        self.put("tests/tenant/test_memory.c", TOP + "\nvoid f(void)\n{\n"
                 '\texpect(t, OK, "alloc a 64m");\n}\n')
        self.is_content("gen_docs.py")
        with open(os.path.join(self.root, "docs/coverage.md"), encoding="utf-8") as f:
            text = f.read()
        self.assertIn("1 functions are hooked, 1 should be and are not", text)
        self.assertIn("| `cuMemAlloc` (first) `_v2` | by 2 MiB | [hook_memory.c](../src/tenant/hooks/"
                      "hook_memory.c), **not yet: `cuMemAlloc`** | memory |", text)
        self.assertIn("| asks | `cuInit` |", text)


@unittest.skipUnless(shutil.which("cc") or shutil.which("gcc"), "no C compiler")
class Libraries(Tree):
    def build(self, path, source, *options):
        out = os.path.join(self.root, "build", path)
        os.makedirs(os.path.dirname(out), exist_ok=True)
        code = self.put("code.c", source)
        subprocess.run([shutil.which("cc") or "gcc", "-w", "-shared", "-fPIC", "-o", out, code,
                        *options], check=True)
        os.remove(code)
        return out

    def build_all(self, tenant="int cuInit, dlsym, dlvsym;", cuda="int cuInit, cuCtxGetDevice;"):
        self.put("src/gpu/cuda.def", TOP + "HOOK(cuInit)\nCALL(cuCtxGetDevice)\n")
        self.put("src/gpu/nvml.def", TOP + "CALL(nvmlInit_v2)\n")
        self.put("src/gpu/nvml_node.def", TOP + "CALL(nvmlInit_v2)\n")
        self.build("src/tenant/libvgpu.so", tenant)
        self.build("sim/cuda/libcuda.so.1", cuda)
        self.build("sim/nvml/libnvidia-ml.so.1", "int nvmlInit_v2;")

    def exports(self, words, **sources):
        self.build_all(**sources)
        build = os.path.join(self.root, "build")
        if words:
            self.finds("check_exports.py", words, build)
        else:
            self.is_content("check_exports.py", build)

    def test_exports_that_equal_the_tables_are_fine(self):
        self.exports(None)

    def test_an_extra_export_is_found(self):
        self.exports("exports helper", tenant="int cuInit, dlsym, dlvsym, helper;")

    def test_a_hook_that_is_not_exported_is_found(self):
        self.exports("cuInit is not exported", tenant="int dlsym, dlvsym;")

    def test_a_missing_door_is_found(self):
        self.exports("does not export dlvsym", tenant="int cuInit, dlsym;")

    def test_a_row_that_the_simulated_node_lacks_is_found(self):
        self.exports("cuCtxGetDevice is missing from", cuda="int cuInit;")

    def test_a_driver_with_new_functions_is_found(self):
        self.put("src/gpu/coverage.def", TOP + 'MEMORY("first", cuInit, cuCtxCreate)\n'
                 'HARMLESS("asks", cuDeviceGet)\n')
        self.put("src/gpu/cuda.def", TOP + "HOOK(cuInit)\nHOOK(cuCtxCreate_v2)\n")
        self.put("tests/gpu/exports/cuda.txt", "cuInit\ncuCtxCreate_v2\ncuDeviceGet\n")
        known = self.build("known/libcuda.so.1", "int cuInit, cuDeviceGet_v2, other;")
        self.is_content("check_coverage.py", known)
        new = self.build("new/libcuda.so.1", "int cuInit, cuNew;")
        self.finds("check_coverage.py", "new: no row of src/gpu/coverage.def names cuNew", new)
        form = self.build("form/libcuda.so.1", "int cuInit, cuCtxCreate_v5;")
        self.finds("check_coverage.py", "new: cuCtxCreate_v5 is a form of a function to be hooked "
                   "(src/gpu/coverage.def:3), and is not", form)

    def test_a_symbol_newer_than_the_floor_is_found(self):
        old = self.build("old.so", "int f(void) { return getpid(); }")
        rc, said = self.run_tool("check_glibc_floor.py", old)
        self.assertEqual(rc, 0, said)
        new = self.build("new.so", "#define _GNU_SOURCE\n#include <sys/random.h>\n"
                         "int f(char *b) { return getrandom(b, 1, 0); }")
        rc, said = self.run_tool("check_glibc_floor.py", new)
        self.assertEqual(rc, 1, said)
        self.assertIn("getrandom asks for GLIBC_2.25", said)

    def test_a_library_that_not_every_image_has_is_found(self):
        rc, said = self.run_tool("check_glibc_floor.py",
                                 self.build("math.so", "double f(double a) { return sin(a); }",
                                            "-Wl,--no-as-needed", "-lm"))
        self.assertEqual(rc, 1, said)
        self.assertIn("needs libm.so.6", said)


if __name__ == "__main__":
    unittest.main()
