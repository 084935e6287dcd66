// Package jsonbody reads the JSON object that a request carries, in one way for
// players and operators.
package jsonbody

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/shardhop/shardhop/example-game/internal/problem"
)

var (
	errNotJSON   = problem.New(http.StatusUnsupportedMediaType, "not_json", "The body has to be JSON in UTF-8, with the Content-Type application/json")
	errTooLarge  = problem.New(http.StatusRequestEntityTooLarge, "body_too_large", "The body is too large")
	errMalformed = problem.New(http.StatusBadRequest, "bad_json", "The body is not a JSON object of the right form")
)

// Decode reads the one JSON object of a request into form. Fields that the form
// does not have are ignored. Whoever calls bounds the body, with
// http.MaxBytesReader. The result is nil, or the problem to answer with.
func Decode(r *http.Request, form any) error {
	if !isJSON(r.Header.Get("Content-Type")) {
		return errNotJSON
	}
	body, err := Read(r)
	if err != nil {
		return err
	}
	// The decoder would replace what is no text, and so make many passwords one.
	if !utf8.Valid(body) || hasHalfRune(body) || !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		return errMalformed
	}
	err = json.Unmarshal(body, form)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return problem.New(http.StatusUnprocessableEntity, "bad_"+wrong.Field, "The field "+wrong.Field+" is of the wrong type")
	}
	if err != nil {
		return errMalformed
	}
	return nil
}

// Read reads the body of a request, whatever it is; see [Decode].
func Read(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, errTooLarge
	}
	if err != nil {
		return nil, errMalformed
	}
	return body, nil
}

// isJSON reports whether a Content-Type is JSON's. JSON is always UTF-8, so
// another charset is a mistake.
func isJSON(contentType string) bool {
	kind, params, err := mime.ParseMediaType(contentType)
	charset, ok := params["charset"]
	return err == nil && kind == "application/json" && (!ok || strings.EqualFold(charset, "utf-8"))
}
