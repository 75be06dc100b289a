package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The pages that list commands and settings are generated from code and compared with it, so they tell what exists.
const (
	cliPage      = "docs/cli.md"
	settingsPage = "docs/configuration.md"
)

func TestU263_every_command_and_flag_that_a_page_names_exists(t *testing.T) {
	t.Parallel()
	holds(t, checkCommands)
}

func TestU263_commands_and_flags_that_do_not_exist_are_found(t *testing.T) {
	t.Parallel()
	planted{
		{"`flowfabric lanes pause mail --reason x`, `flowfabric serve --listen :1`, `--tls-cert`, `flowfabric`, `flowfabric KIND`", ""},
		{"```sh\n$ ID=$(flowfabric submit a --quiet) && curl --retry 5 x\n$ flowfabric work --kind a -- tr --any\n```\n", ""},
		{"```text\nflowfabric list --status failed\nthe flowfabric crew\n```\n", ""},
		{"`flowfabric lanes explode mail`", "lanes explode"},
		{"`flowfabric sumbit mail`", "sumbit"},
		{"`flowfabric lanes`", ""},
		{"`flowfabric lane`", "there is no command lane"},
		{"`flowfabric list --tls-cert x`", "list has no flag --tls-cert"},
		{"`--no-such-flag`", "no command has a flag --no-such-flag"},
		{"```sh\n$ flowfabric submit a --colour\n```\n", "page.md:2: submit has no flag --colour"},
		{"```text\nflowfabric submit a --colour\n```\n", "--colour"},
		{"```sh\n$ cat x | flowfabric submit a --colour\n```\n", "--colour"},
	}.finds(t, checkCommands)
}

// program is what the generated pages say of the command line.
type program struct {
	flags  map[string][]string // by command: "lanes pause"
	global []string
}

var flagRow = regexp.MustCompile("^\\| `(--[a-z-]+)`")

var commandLine = sync.OnceValue(func() program {
	all := program{flags: map[string][]string{}}
	var settings, client []string
	command, at := "", &settings
	for _, p := range pages() {
		if p.name != settingsPage {
			continue
		}
		for line := range strings.Lines(p.prose) {
			if strings.HasPrefix(line, "## Client") {
				at = &client
			}
			if m := flagRow.FindStringSubmatch(line); m != nil {
				*at = append(*at, m[1])
			}
		}
	}
	for _, p := range pages() {
		if p.name != cliPage {
			continue
		}
		for line := range strings.Lines(p.prose) {
			m := flagRow.FindStringSubmatch(line)
			name, isCommand := strings.CutPrefix(strings.TrimSpace(line), "### flowfabric ")
			switch {
			case isCommand:
				command = name
				all.flags[command] = nil
			case m != nil && command == "":
				all.global = append(all.global, m[1])
			case m != nil:
				all.flags[command] = append(all.flags[command], m[1])
			case strings.HasPrefix(line, "Accepts the settings of the [server]"):
				all.flags[command] = append(all.flags[command], append(settings, "--config")...)
			}
		}
	}
	all.global = append(all.global, append(client, "--help")...)
	return all
})

// groups reports whether a word stands before the names of commands, as quotas does.
func (p program) groups(word string) bool {
	for name := range p.flags {
		if strings.HasPrefix(name, word+" ") {
			return true
		}
	}
	return false
}

// has reports whether some command has a flag.
func (p program) has(flag string) bool {
	for _, flags := range p.flags {
		if slices.Contains(flags, flag) {
			return true
		}
	}
	return slices.Contains(p.global, flag)
}

var (
	call     = regexp.MustCompile(`(?:^|[\s(|;&])flowfabric((?: [^\s|;&)]+)*)`)
	flagWord = regexp.MustCompile(`^--[a-z][a-z-]*`)
	plainly  = regexp.MustCompile(`^[a-z][a-z-]*$`)
)

// wrongCalls tells what is wrong with the calls of the program in a line.
func wrongCalls(line string) (faults []string) {
	for _, m := range call.FindAllStringSubmatch(line, -1) {
		words := strings.Fields(m[1])
		if end := slices.Index(words, "--"); end >= 0 {
			words = words[:end]
		}
		if len(words) == 0 || !plainly.MatchString(words[0]) || words[0] == "completion" || words[0] == "help" {
			continue // a placeholder
		}
		name := words[0]
		flags, known := commandLine().flags[name]
		if len(words) > 1 {
			if two, deeper := commandLine().flags[name+" "+words[1]]; deeper {
				name, flags, known = name+" "+words[1], two, true
			} else if !known {
				name += " " + words[1]
			}
		}
		if !known && len(words) == 1 && commandLine().groups(name) {
			continue
		}
		if !known {
			faults = append(faults, "there is no command "+name)
			continue
		}
		for _, word := range words {
			if flag := flagWord.FindString(word); flag != "" && !slices.Contains(flags, flag) && !slices.Contains(commandLine().global, flag) {
				faults = append(faults, fmt.Sprintf("%s has no flag %s", name, flag))
			}
		}
	}
	return faults
}

// checkCommands looks at shell blocks, at lines of text blocks that begin with the program, and at code inside the prose.
func checkCommands(p page) (faults []string) {
	for _, b := range p.blocks {
		joined := strings.ReplaceAll(b.text, "\\\n", " ")
		for line := range strings.Lines(joined) {
			line = strings.TrimSpace(line)
			text, isCommand := strings.CutPrefix(line, "$ ")
			if b.language == "sh" && isCommand || b.language == "text" && (isCommand || strings.HasPrefix(line, "flowfabric ")) {
				for _, fault := range wrongCalls(strings.TrimSpace(text)) {
					faults = append(faults, fmt.Sprintf("%s: %s", b, fault))
				}
			}
		}
	}
	for _, m := range code.FindAllString(p.prose, -1) {
		text := strings.Trim(m, "`")
		if strings.HasPrefix(text, "flowfabric ") {
			for _, fault := range wrongCalls(text) {
				faults = append(faults, p.name+": "+fault)
			}
		} else if flag := flagWord.FindString(text); flag != "" && !commandLine().has(flag) {
			faults = append(faults, p.name+": no command has a flag "+flag)
		}
	}
	return faults
}
