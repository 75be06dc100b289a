package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// write makes files of a module.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

const plan = `
module example.com/m
source e
type Engine
keep open
name unit Tx
room e/txn txn Engine
room e/jobs jobs Jobs job*
`

func engine(job string) map[string]string {
	return map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26\n",
		"plan":   plan,
		"e/e.go": "package e\n\n// Engine runs commands.\ntype Engine struct{ at int }\n\n" +
			"type command interface{ decide(u *unit) error }\n\n// unit is a transaction.\ntype unit struct{ jobID int }\n\n" +
			"// do runs a command.\nfunc (e *Engine) do(c command) error { return c.decide(&unit{jobID: e.at}) }\n\n" +
			"type wake struct{}\n\nfunc (wake) decide(*unit) error { return nil }\n\nvar _ command = wake{}\n",
		"e/open.go": "package e\n\nfunc Open() *Engine { return &Engine{} }\n",
		"e/job.go": "package e\n\n// Job is one.\ntype Job struct{ *unit }\n\nfunc (j *Job) decide(u *unit) error { j.unit = u; return nil }\n\n" +
			"// Run runs a job.\nfunc (e *Engine) Run() (int, error) {\n\tj := &Job{}\n\terr := e.do(j)\n\treturn j.unit.jobID, err\n}\n" + job,
		"e/export_test.go": "package e\n\n// At is the time.\nfunc At(e *Engine) int { return e.at }\n",
		"e/e_test.go":      "package e_test\n\nimport (\n\t\"testing\"\n\n\t\"example.com/m/e\"\n)\n\nfunc TestIt(t *testing.T) {\n\tvar j e.Job\n\t_, _ = j, e.At(e.Open())\n}\n",
	}
}

func TestFilesBecomePackagesThatCompileAndTheirTestsPass(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, engine(""))
	var told strings.Builder
	if err := run(dir, filepath.Join(dir, "plan"), &told); err != nil {
		t.Fatal(err, told.String())
	}
	write(t, dir, map[string]string{ // what is left to the hand
		"e/jobs/jobs.go": "package jobs\n\nimport \"example.com/m/e/txn\"\n\n// Jobs runs jobs.\ntype Jobs struct{ *txn.Engine }\n",
		"e/open.go": "package e\n\nimport (\n\t\"example.com/m/e/jobs\"\n\t\"example.com/m/e/txn\"\n)\n\n// Engine is all.\ntype Engine struct {\n\t*txn.Engine\n\t*jobs.Jobs\n}\n\n" +
			"// Open opens.\nfunc Open() *Engine {\n\tk := &txn.Engine{}\n\treturn &Engine{k, &jobs.Jobs{Engine: k}}\n}\n",
		"e/facade.go":     "package e\n\nimport \"example.com/m/e/jobs\"\n\n// Job is one.\ntype Job = jobs.Job\n",
		"e/txn/e_test.go": "package txn_test\n\nimport (\n\t\"testing\"\n\n\t\"example.com/m/e\"\n\t\"example.com/m/e/txn\"\n)\n\nfunc TestIt(t *testing.T) {\n\tvar j e.Job\n\t_, _ = j, txn.At(e.Open().Engine)\n}\n",
	})
	test := exec.CommandContext(t.Context(), "go", "test", "./...")
	test.Dir = dir
	if out, err := test.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	kernel, err := os.ReadFile(filepath.Join(dir, "e/txn/e.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Engine struct{ at int }", "// Tx is a transaction.", "type command interface{ Decide(u *Tx) error }", "struct{ JobID int }", "// Do runs", "func (wake) Decide("} {
		if !strings.Contains(string(kernel), want) {
			t.Errorf("no %q in\n%s", want, kernel)
		}
	}
}

func TestAKernelThatUsesARoomAndATakenNameChangeNothing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(map[string]string){
		"the kernel uses Job": func(files map[string]string) { files["e/more.go"] = "package e\n\nvar _ Job\n" },
		"Do is taken": func(files map[string]string) {
			files["e/more.go"] = "package e\n\n// Do does.\nfunc (e *Engine) Do() {}\n"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, files := t.TempDir(), engine("")
			change(files)
			write(t, dir, files)
			var told strings.Builder
			if err := run(dir, filepath.Join(dir, "plan"), &told); err == nil || !strings.Contains(told.String(), name) {
				t.Errorf("%v, told %q", err, told.String())
			}
			if _, err := os.Stat(filepath.Join(dir, "e/txn")); err == nil {
				t.Error("files were moved")
			}
		})
	}
}
