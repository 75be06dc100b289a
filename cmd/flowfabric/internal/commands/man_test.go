package commands

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestU160_every_command_has_a_man_page_with_all_of_its_flags_and_examples(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "man1")
	if code := (&App{Out: io.Discard, Err: io.Discard, Build: Build{Version: "1.2.3"}}).Run([]string{"man", "--dir", dir}); code != 0 {
		t.Fatalf("exit %d", code)
	}
	root := tree()
	for _, cmd := range everyCommand(root) {
		if cmd.Name() == "help" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, manName(cmd)+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		page := string(data)
		wants := append([]string{roff(cmd.Short), "flowfabric 1.2.3"}, strings.Split(roff(cmd.Example), "\n")...)
		collect := func(f *pflag.Flag) {
			if !f.Hidden && !unused(cmd, f.Name) {
				wants = append(wants, roff("--"+f.Name), roff(f.Usage))
			}
		}
		cmd.LocalFlags().VisitAll(collect)
		cmd.InheritedFlags().VisitAll(collect)
		for _, want := range wants {
			if !strings.Contains(page, strings.TrimSpace(want)) {
				t.Errorf("the page of %s lacks %q", cmd.CommandPath(), want)
			}
		}
	}
}

func TestU160_what_looks_like_a_request_of_roff_is_text(t *testing.T) {
	t.Parallel()
	if got := roff(".TH a-b\n'c\\d"); got != "\\&.TH a\\-b\n\\&'c\\ed" {
		t.Errorf("%q", got)
	}
}
