package story

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// browser opens the pages of links.
type browser struct{ http *http.Client }

// open shows a page, as a person or the scanner of a mail server would.
func (b browser) open(ctx context.Context, address string) (lines []string, status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, 0, err
	}
	return b.page(r)
}

// press presses a button of the page. The browser is sent back to the page, which tells the outcome.
func (b browser) press(ctx context.Context, address, decision, comment string) (lines []string, status int, err error) {
	form := url.Values{"decision": {decision}, "comment": {comment}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, 0, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.page(r)
}

func (b browser) page(r *http.Request) (lines []string, status int, err error) {
	r.Header.Set("Accept", "text/html")
	answer, err := b.http.Do(r)
	if err != nil {
		return nil, 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return words(string(text)), answer.StatusCode, err
}

// refused decides by a program, and wants it to be refused: the answer is the code.
func (b browser) refused(ctx context.Context, address string) (code string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(`{"decision": "approve"}`))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := b.http.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var problem struct{ Code string }
	if err := json.NewDecoder(answer.Body).Decode(&problem); err != nil {
		return "", err
	}
	if answer.StatusCode < http.StatusBadRequest {
		return "", errors.New("a link that is not good was accepted")
	}
	return fmt.Sprintf("%d %s", answer.StatusCode, problem.Code), nil
}

var (
	button = regexp.MustCompile(`<button[^>]*>([^<]*)</button>`)
	tag    = regexp.MustCompile(`<[^>]*>`)
)

// words are what a page shows, line by line, with its buttons in brackets.
func words(page string) (lines []string) {
	_, page, _ = strings.Cut(page, "<main>")
	page, _, _ = strings.Cut(page, "</main>")
	page = button.ReplaceAllString(page, "[ $1 ]")
	for line := range strings.Lines(page) {
		if seen := strings.Fields(html.UnescapeString(tag.ReplaceAllString(line, " "))); len(seen) > 0 {
			lines = append(lines, strings.Join(seen, " "))
		}
	}
	return lines
}
