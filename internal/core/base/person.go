package base

import (
	"strings"
	"unicode"
)

// Names of people decide whether a quorum is reached: one person must not count twice by spelling the name differently.

// SamePerson returns the form in which names of people are compared: without surrounding white space and invisible characters, and in one case.
func SamePerson(name string) string {
	name = strings.Map(func(r rune) rune {
		if invisible(r) {
			return -1
		}
		return r
	}, name)
	return strings.ToLower(strings.ToUpper(strings.Join(strings.Fields(name), " ")))
}

// CheckPerson returns what is wrong with a name of a person, or "".
func CheckPerson(name string, high int) string {
	switch why := CheckPlain(name, 1, high); {
	case why != "":
		return why
	case strings.ContainsFunc(name, invisible):
		return "must not contain invisible characters"
	case SamePerson(name) == "":
		return "must not be blank"
	default:
		return ""
	}
}

// invisible reports whether a character is not displayed: names that differ only by it look the same.
func invisible(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
