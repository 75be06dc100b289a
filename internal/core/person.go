package core

import (
	"strings"
	"unicode"
)

// Names of people decide whether a quorum is reached: one person must not count twice by spelling the name differently.

// samePerson returns the form in which names of people are compared: without surrounding white space and invisible characters, and in one case.
func samePerson(name string) string {
	name = strings.Map(func(r rune) rune {
		if invisible(r) {
			return -1
		}
		return r
	}, name)
	return strings.ToLower(strings.ToUpper(strings.Join(strings.Fields(name), " ")))
}

// checkPerson returns what is wrong with a name of a person, or "".
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

// invisible reports whether a character is not displayed: names that differ only by it look the same.
func invisible(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
