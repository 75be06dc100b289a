package apitest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// Answer is what a server said to a request.
type Answer struct {
	Method, Path string // of the request
	Status       int
	Header       http.Header
	Body         []byte // unpacked
}

// Routes is a document with a mux that finds its operations.
type Routes struct {
	*Document
	mux *http.ServeMux
}

// ReadRoutes understands the text of the server's own document.
func ReadRoutes(text []byte) (*Routes, error) {
	read, err := Read(text)
	if err != nil {
		return nil, err
	}
	d := &Routes{read, http.NewServeMux()}
	for _, o := range wire.Operations() {
		d.mux.HandleFunc(o.Method+" "+o.Path, func(http.ResponseWriter, *http.Request) {})
	}
	return d, nil
}

// Conforms returns how an answer deviates from the OpenAPI document (U116) and from what every answer must have.
func (d *Routes) Conforms(a Answer) error {
	if a.Header.Get("X-Content-Type-Options") != "nosniff" || a.Header.Get("Referrer-Policy") != "no-referrer" ||
		a.Header.Get("Cache-Control") == "" || a.Header.Get("X-Request-Id") == "" {
		return fmt.Errorf("the headers of every answer are missing: %v", a.Header)
	}
	content, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
	page := content == "text/html" && strings.HasPrefix(a.Path, "/approve/") // for people (W73)
	if a.Status >= 400 && content != "application/problem+json" && !strings.HasPrefix(a.Path, "/readyz") && !page {
		return errors.New("the refusal is no problem")
	}
	if a.Method == http.MethodHead || len(a.Body) == 0 {
		return nil
	}
	switch content {
	case "application/problem+json":
		return d.checkProblem(a)
	case "application/json":
		return d.checkJSON(a)
	}
	return nil
}

// checkProblem holds a refusal against what every problem is, and against the requests of its operation.
func (d *Routes) checkProblem(a Answer) error {
	if err := d.CheckProblem(a.Body); err != nil {
		return err
	}
	verb, route, err := d.route(a)
	if err != nil || route == "" {
		return err
	}
	return d.CheckPlaces(verb, route, a.Body)
}

// checkJSON compares an answer with its operation. Answers that consist of user bytes have no schema.
func (d *Routes) checkJSON(a Answer) error {
	verb, route, err := d.route(a)
	if err != nil || route == "" || route == "/openapi.json" ||
		strings.HasSuffix(route, "/input") || strings.HasSuffix(route, "/result") || strings.HasSuffix(route, "/inputs/{name}") {
		return err
	}
	if err := d.CheckAnswer(verb, route, a.Status, a.Body); err != nil {
		return err
	}
	return checkItems(a.Body)
}

// route is the operation that an answer is of, as the document writes it; "" when it has none.
func (d *Routes) route(a Answer) (verb, path string, err error) {
	asked, _, _ := strings.Cut(a.Path, "?")
	r, err := http.NewRequestWithContext(context.Background(), a.Method, strings.TrimSuffix(asked, "/"), nil)
	if err != nil {
		return "", "", err
	}
	_, pattern := d.mux.Handler(r)
	verb, path, _ = strings.Cut(pattern, " ")
	return verb, path, nil
}
