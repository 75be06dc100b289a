package archtest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

func TestNoFileNamesAMachine(t *testing.T) {
	t.Parallel()
	holds(t, checkPaths, "the tree must work on any machine: no paths of somebody's home or workplace, no settings of a package registry")
}

func TestNothingIsLeftForLater(t *testing.T) {
	t.Parallel()
	holds(t, checkLeftovers, "nothing dead and nothing for later: what is not built is not in the tree, what is missing is an issue")
}

func TestNamesOfMachinesAreFound(t *testing.T) {
	t.Parallel()
	finds(t, checkPaths, []example{
		{name: "places every machine has, and routes", files: map[string]string{"a.md": "/usr/lib/postgresql, /tmp, https://host/home/x, /v1/work/main, ./root/x, GET /work/claims"}},
		{name: "homes and workplaces", files: map[string]string{
			"a.md": "see /ho" + "me/ana/src", "b.sh": "\ncd /ro" + "ot/x", "c.go": "package c // \"/wo" + "rk/main/x\"", "d.yml": "dir: /Us" + "ers/ana",
		}, want: []string{"a.md:1", "b.sh:2", "c.go:1", "d.yml:1"}},
		{name: "a registry", files: map[string]string{"Makefile": "export GO" + "PROXY=x"}, want: []string{"Makefile:1"}},
	})
	finds(t, checkLeftovers, []example{
		{name: "words that only look like it", files: map[string]string{"a.go": "package a // the to-do list", "a.md": "TO" + "DO"}},
		{name: "marks", files: map[string]string{"a.go": "package a // TO" + "DO: more", "b.sql": "-- FIX" + "ME"}, want: []string{"a.go:1", "b.sql:1"}},
	})
}

var (
	machinePath = regexp.MustCompile(`(^|[^A-Za-z0-9_./-])(/(home|root|Users)/[A-Za-z0-9.]|/(work|farm)/(main|steering|shared|in|\.library)\b)`)
	registry    = regexp.MustCompile(`\bGO` + `PROXY=|--regis` + `try\b|sources\.` + `list\b`)
	leftover    = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
)

func checkPaths(all []source) []string {
	return append(matches(all, "names a path of one machine", machinePath), matches(all, "sets a package registry", registry)...)
}

func checkLeftovers(all []source) []string {
	var code []source
	for _, s := range all {
		if s.isGo() || s.isSQL() || strings.HasSuffix(s.path, ".ts") || strings.HasSuffix(s.path, ".tsx") {
			code = append(code, s)
		}
	}
	return matches(code, "leaves something for later", leftover)
}

func matches(all []source, what string, pattern *regexp.Regexp) []string {
	var found []string
	for _, s := range all {
		for i, line := range strings.Split(s.text, "\n") {
			if pattern.MatchString(line) {
				found = append(found, fmt.Sprintf("%s:%d %s", s.path, i+1, what))
			}
		}
	}
	return found
}
