package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

const root = "../.."

// page is a Markdown file.
type page struct {
	name   string // relative to the root
	text   string
	blocks []block
	prose  string // the text with its blocks blanked, so that lines keep their numbers
}

// block is a fenced block of a page.
type block struct {
	page     string
	line     int    // of its first line
	language string // the first word behind the fence
	info     string // the rest
	text     string
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

var opening = regexp.MustCompile("^( *)(```+)([^`]*)$")

// readPage splits a page into blocks and prose. A block that is never closed ends with the page.
func readPage(name, text string) page {
	p := page{name: name, text: text}
	var open *block
	var fence, indent string
	var prose strings.Builder
	number := 0
	for line := range strings.Lines(text) {
		number++
		bare := strings.TrimRight(line, "\n")
		switch m := opening.FindStringSubmatch(bare); {
		case open == nil && m != nil:
			language, info, _ := strings.Cut(strings.TrimSpace(m[3]), " ")
			open = &block{page: name, line: number + 1, language: language, info: strings.TrimSpace(info)}
			indent, fence = m[1], m[2]
		case open != nil && strings.TrimSpace(bare) == fence:
			p.blocks = append(p.blocks, *open)
			open = nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent)
		default:
			prose.WriteString(bare)
		}
		prose.WriteString("\n")
	}
	if open != nil {
		p.blocks = append(p.blocks, *open)
	}
	p.prose = prose.String()
	return p
}

// pages are all pages of the tree.
var pages = sync.OnceValue(func() []page {
	var all []page
	for _, name := range files(".md") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			panic(err)
		}
		all = append(all, readPage(name, string(text)))
	}
	return all
})

// files lists the files of the tree with that ending, relative to the root.
func files(ending string) []string {
	var all []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bin", "node_modules", "testdata"}, d.Name()):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, ending):
			name, err := filepath.Rel(root, path)
			all = append(all, filepath.ToSlash(name))
			return err
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	return all
}

// pageNamed is one page of the tree.
func pageNamed(t *testing.T, name string) page {
	t.Helper()
	for _, p := range pages() {
		if p.name == name {
			return p
		}
	}
	t.Fatalf("there is no page %s", name)
	return page{}
}

// holds fails the test with every fault that a check finds in a page of the tree.
func holds(t *testing.T, check func(page) []string) {
	t.Helper()
	if len(pages()) < 10 {
		t.Fatalf("only %d pages found: they are not where they are looked for", len(pages()))
	}
	for _, p := range pages() {
		for _, fault := range check(p) {
			t.Error(fault)
		}
	}
}

// planted are pages with one fault each, and a part of what a check must say of it; "" means that the page is in order.
type planted []struct{ text, want string }

// finds fails the test when a check lets a planted fault through, or finds one where none is.
func (all planted) finds(t *testing.T, check func(page) []string) {
	t.Helper()
	for _, c := range all {
		switch faults := check(readPage("page.md", c.text)); {
		case c.want == "" && len(faults) > 0:
			t.Errorf("%s\nis in order, but: %s", c.text, strings.Join(faults, "; "))
		case c.want != "" && !strings.Contains(strings.Join(faults, "\n"), c.want):
			t.Errorf("%s\nwas let through; found only: %s", c.text, strings.Join(faults, "; "))
		}
	}
}

// languages are those of blocks that are checked, and text.
var languages = []string{"go", "json", "sh", "text"}

func TestU263_every_block_is_checked_or_is_text(t *testing.T) {
	t.Parallel()
	holds(t, checkLanguages)
}

func TestU263_a_block_of_no_known_language_is_found(t *testing.T) {
	t.Parallel()
	planted{
		{"```text\nhm\n```\n\n- a list\n\n  ```sh\n  $ true\n  ```\n", ""},
		{"```\nhm\n```\n", `page.md:2: a block of ""`},
		{"```yaml\nhm: 1\n```\n", `"yaml"`},
		{"- a list\n\n  ```rust\n  fn\n  ```\n", `page.md:4: a block of "rust"`},
		{"```toml\nnever closed", `"toml"`},
	}.finds(t, checkLanguages)
}

func checkLanguages(p page) (faults []string) {
	for _, b := range p.blocks {
		if !slices.Contains(languages, b.language) {
			faults = append(faults, fmt.Sprintf("%s: a block of %q; checked are %s, anything else is text", b, b.language, strings.Join(languages[:3], ", ")))
		}
	}
	return faults
}
