// Package nearest finds the known name that a mistyped one was meant to be. It does not know what the names are for.
package nearest

// To is the known name with the fewest changes between it and name; "" when none is near.
func To(name string, known []string) string {
	best, least := "", len(name)/2+1
	for _, k := range known {
		if d := distance(name, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance counts insertions, deletions and replacements between a and b.
func distance(a, b string) int {
	last, row := make([]int, len(b)+1), make([]int, len(b)+1)
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
		}
		last, row = row, last
	}
	return last[len(b)]
}
