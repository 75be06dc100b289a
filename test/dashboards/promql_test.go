package dashboards

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// selector is one place of an expression that reads series.
type selector struct {
	name     string
	matchers []matcher
	groups   []string // labels that the expression groups it by
}

// matcher compares a label.
type matcher struct{ label, op, value string }

// matches reports whether a series has a value that the matcher wants. A variable of the dashboard stands for everything.
func (m matcher) matches(value string) bool {
	if strings.HasPrefix(m.value, "$") {
		return true
	}
	switch m.op {
	case "=":
		return value == m.value
	case "!=":
		return value != m.value
	}
	matched, err := regexp.MatchString("^(?:"+m.value+")$", value)
	return err == nil && matched == (m.op == "=~")
}

// token matches the next piece of PromQL: texts, operators, ranges, words, numbers, brackets.
var token = regexp.MustCompile(`^(?:"(?:[^"\\]|\\.)*"|=~|!~|!=|==|>=|<=|\[[^\]]*\]|[a-zA-Z_:][a-zA-Z0-9_:]*|[0-9][0-9.]*|[-+*/%^<>=(){},])`)

var word = regexp.MustCompile(`^[a-zA-Z_:]`)

func tokens(expr string) ([]string, error) {
	var all []string
	for rest := strings.TrimSpace(expr); rest != ""; rest = strings.TrimSpace(rest) {
		t := token.FindString(rest)
		if t == "" {
			return nil, fmt.Errorf("%q cannot be read from %q on", expr, rest)
		}
		all, rest = append(all, t), rest[len(t):]
	}
	return all, nil
}

// reader walks through the tokens of an expression.
type reader struct {
	tokens []string
	at     int
	found  []*selector
}

// selectors are all places of an expression that read series.
func selectors(expr string) ([]*selector, error) {
	all, err := tokens(expr)
	if err != nil {
		return nil, err
	}
	r := &reader{tokens: all}
	if err := r.group(); err != nil {
		return nil, fmt.Errorf("%q: %w", expr, err)
	}
	if r.at < len(r.tokens) {
		return nil, fmt.Errorf("%q has a bracket too many", expr)
	}
	if len(r.found) == 0 {
		return nil, fmt.Errorf("%q reads nothing", expr)
	}
	return r.found, nil
}

func (r *reader) peek() string {
	if r.at < len(r.tokens) {
		return r.tokens[r.at]
	}
	return ""
}

func (r *reader) next() string {
	t := r.peek()
	r.at++
	return t
}

// operators are words between operands.
var operators = []string{"and", "or", "unless", "bool", "offset"}

// group reads up to the bracket that closes it, or to the end. What an aggregation groups by may stand before its body or behind it.
func (r *reader) group() error {
	var pending []string
	body := len(r.found) // where the selectors of the body begin that a grouping behind it is about
	for t := r.peek(); t != "" && t != ")"; t = r.peek() {
		r.next()
		switch {
		case t == "by":
			labels, err := r.labels()
			if err != nil {
				return err
			}
			if r.peek() == "(" {
				pending = labels
			} else {
				groupBy(r.found[body:], labels)
			}
		case t == "(":
			body = len(r.found)
			if err := r.inside(); err != nil {
				return err
			}
			groupBy(r.found[body:], pending)
			pending = nil
		case word.MatchString(t) && r.peek() != "(" && r.peek() != "by" && !slices.Contains(operators, t):
			if err := r.selector(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// inside reads a group and the bracket that closes it.
func (r *reader) inside() error {
	if err := r.group(); err != nil {
		return err
	}
	if r.next() != ")" {
		return errors.New("a bracket is open")
	}
	return nil
}

func groupBy(all []*selector, labels []string) {
	for _, s := range all {
		s.groups = append(s.groups, labels...)
	}
}

// labels reads the labels of a grouping.
func (r *reader) labels() ([]string, error) {
	if r.next() != "(" {
		return nil, errors.New("by wants labels")
	}
	var all []string
	for {
		switch t := r.next(); {
		case t == ")":
			return all, nil
		case t == ",":
		case word.MatchString(t):
			all = append(all, t)
		default:
			return nil, fmt.Errorf("%q is no label", t)
		}
	}
}

// selector reads what stands behind the name of a series.
func (r *reader) selector(name string) error {
	s := &selector{name: name}
	r.found = append(r.found, s)
	if r.peek() != "{" {
		return nil
	}
	r.next()
	for {
		switch t := r.next(); {
		case t == "}":
			return nil
		case t == ",":
		case word.MatchString(t):
			m := matcher{label: t, op: r.next(), value: strings.Trim(r.next(), `"`)}
			if !slices.Contains([]string{"=", "!=", "=~", "!~"}, m.op) {
				return fmt.Errorf("label %s is compared with %q", t, m.op)
			}
			s.matchers = append(s.matchers, m)
		default:
			return fmt.Errorf("%q is no label", t)
		}
	}
}
