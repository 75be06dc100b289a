package docs

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	code    = regexp.MustCompile("`[^`\n]+`")
)

func TestU263_every_link_inside_the_tree_leads_somewhere(t *testing.T) {
	t.Parallel()
	holds(t, checkLinks)
}

func TestU263_links_and_anchors_that_lead_nowhere_are_found(t *testing.T) {
	t.Parallel()
	planted{
		{"# One\n\n[here](#one) [README](README.md#example) [outside](https://example.com/x) `[no](link)`", ""},
		{"# One\n\n# One\n\n[second](#one-1)", ""},
		{"[gone](docs/gone.md)", "docs/gone.md, which does not exist"},
		{"# One\n\n[two](#two)", "#two, which is no heading"},
		{"[README](README.md#no-such-part)", "README.md#no-such-part"},
	}.finds(t, checkLinks)
}

func TestU263_anchors_are_those_of_headings(t *testing.T) {
	t.Parallel()
	got := anchors("# A page\n## What is `stored`, and why?\n## [Link](x.md) a\n")
	if want := []string{"#a-page", "#what-is-stored-and-why", "#link-a"}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// unlisted are pages for those who work on the engine; CONTRIBUTING.md links to them.
var unlisted = []string{"seed-coverage.md"}

func TestU264_the_index_names_every_page(t *testing.T) {
	t.Parallel()
	index := pageNamed(t, "docs/README.md").text
	for _, p := range pages() {
		name, inside := strings.CutPrefix(p.name, "docs/")
		if inside && name != "README.md" && !slices.Contains(unlisted, name) && !strings.Contains(name, "/") && !strings.Contains(index, "("+name+")") {
			t.Errorf("docs/README.md does not name %s", name)
		}
	}
}

func TestU264_the_readme_is_a_landing_page(t *testing.T) {
	t.Parallel()
	readme := pageNamed(t, "README.md")
	if len(readme.blocks) == 0 || readme.blocks[0].language != "go" {
		t.Fatal("the README does not begin with an example")
	}
	lines := strings.Split(strings.TrimSuffix(readme.blocks[0].text, "\n"), "\n")
	written := 0
	for _, line := range lines {
		if strings.TrimSpace(line) != "" {
			written++
		}
		if wide := len(strings.ReplaceAll(line, "\t", "        ")); wide > 90 {
			t.Errorf("%d columns do not fit where the README is read: %s", wide, line)
		}
	}
	if written > 12 {
		t.Errorf("the example has %d lines of code, more than 12", written)
	}
	if !slices.ContainsFunc(sources(), func(text string) bool {
		return strings.Contains(text, readme.blocks[0].text) && strings.Contains(text, "// Output:")
	}) {
		t.Error("no example with an output runs the code of the README")
	}
	for _, part := range []string{"## Install", "go install", "flowfabric dev", "](docs/flowfabric.svg)", "## Numbers", "riverqueue.com", "temporal.io", "hatchet.run", "dbos.dev", "## Status", "Not there yet"} {
		if !strings.Contains(readme.text, part) {
			t.Errorf("the README lacks %s", part)
		}
	}
	for _, name := range unlisted {
		if strings.Contains(readme.text, name) || strings.Contains(pageNamed(t, "docs/README.md").text, name) {
			t.Errorf("%s is in the public index", name)
		}
	}
}

func checkLinks(p page) (faults []string) {
	for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(p.prose, ""), -1) {
		if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
			continue
		}
		text := p.text
		if m[1] != "" {
			to := path.Join(path.Dir(p.name), m[1])
			content, err := os.ReadFile(filepath.Join(root, to))
			if _, lost := os.Stat(filepath.Join(root, to)); lost != nil {
				faults = append(faults, fmt.Sprintf("%s links to %s, which does not exist", p.name, to))
				continue
			} else if err != nil {
				continue // a directory
			}
			text = string(content)
		}
		if m[2] != "" && !slices.Contains(anchors(text), m[2]) {
			faults = append(faults, fmt.Sprintf("%s links to %s%s, which is no heading", p.name, m[1], m[2]))
		}
	}
	return faults
}

var linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// anchors lists what links may end in, as hosts of Markdown make them of headings.
func anchors(text string) []string {
	var all []string
	seen := map[string]int{}
	for _, m := range heading.FindAllStringSubmatch(readPage("", text).prose, -1) {
		id := "#" + strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
				return r
			}
			return -1
		}, strings.ToLower(linkText.ReplaceAllString(m[1], "$1")))
		if n := seen[id]; n > 0 {
			all = append(all, id+"-"+strconv.Itoa(n))
		} else {
			all = append(all, id)
		}
		seen[id]++
	}
	return all
}
