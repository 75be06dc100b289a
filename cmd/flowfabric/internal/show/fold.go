package show

import (
	"strings"

	"charm.land/lipgloss/v2"
)

const (
	gap       = 2  // spaces between two columns
	narrowest = 16 // minimum width of a column of sentences
)

// fitted returns the widths of columns. If a line does not fit into the terminal, columns of sentences are narrowed, the widest
// first, and folded breaks their cells. Ids and names stay whole, so that they can be copied. A terminal of width 0 has no limit.
func fitted(lines [][]string, terminal int) []int {
	widths := make([]int, len(lines[0]))
	longest := make([]int, len(lines[0])) // word
	total := gap * (len(widths) - 1)
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], lipgloss.Width(cell))
			for word := range strings.FieldsSeq(cell) {
				longest[i] = max(longest[i], lipgloss.Width(word))
			}
		}
	}
	for _, w := range widths {
		total += w
	}
	for terminal > 0 && total > terminal {
		widest := -1
		for i, w := range widths {
			if w > max(longest[i], narrowest) && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break // nothing left to narrow
		}
		widths[widest]--
		total--
	}
	return widths
}

// folded returns the lines of a row: each cell is broken between words at the width of its column.
func folded(row []string, widths []int) [][]string {
	lines := [][]string{}
	for i, cell := range row {
		for n, part := range broken(cell, widths[i]) {
			if n == len(lines) {
				lines = append(lines, make([]string, len(row)))
			}
			lines[n][i] = part
		}
	}
	return lines
}

// broken breaks a text between words. A word that is longer than a line gets its own line. It returns at least one line.
func broken(text string, width int) []string {
	if lipgloss.Width(text) <= width {
		return []string{text}
	}
	var lines []string
	for word := range strings.FieldsSeq(text) {
		if last := len(lines) - 1; last >= 0 && lipgloss.Width(lines[last])+1+lipgloss.Width(word) <= width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}
