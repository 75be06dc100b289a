package core

import (
	"strings"
	"unicode"
)

// Names of people decide whether a quorum is met: one person must not count twice by writing the name in another way.

// samePerson is what names of people are compared by: without white space around them and invisible characters, and in one case.
func samePerson(name string) string {
	name = strings.Map(func(r rune) rune {
		if invisible(r) {
			return -1
		}
		return r
	}, name)
	return strings.ToLower(strings.ToUpper(strings.Join(strings.Fields(name), " ")))
}

// checkPerson tells what is wrong with a name that may stand for a person; "" when nothing is.
func checkPerson(name string, high int) string {
	switch why := checkPlain(name, 1, high); {
	case why != "":
		return why
	case strings.ContainsFunc(name, invisible):
		return "must not contain invisible characters"
	case samePerson(name) == "":
		return "must not be blank"
	default:
		return ""
	}
}

// invisible reports whether a character shows nothing and takes no room: names that differ by it look the same.
func invisible(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
