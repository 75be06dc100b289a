package jsonx

import "strings"

// Nearest returns the known name that a mistyped one was probably meant to be: the one with the fewest changes between them, capitals
// apart; "" when none is near.
func Nearest(name string, known []string) string {
	best, distance := "", len(name)/2+1
	for _, k := range known {
		if d := editDistance(strings.ToLower(name), strings.ToLower(k), distance); d < distance {
			best, distance = k, d
		}
	}
	return best
}

// Hint says which known name was meant (U5): the nearest one, or all of them when none is near.
func Hint(name string, known []string) string {
	switch best := Nearest(name, known); {
	case best != "":
		return `did you mean "` + best + `"?`
	case len(known) == 0:
		return "leave it out; no fields are known here"
	default:
		return "known here: " + strings.Join(known, ", ")
	}
}

// editDistance counts insertions, deletions, replacements and swaps of neighbours between a and b; limit or more is limit.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit)
}
