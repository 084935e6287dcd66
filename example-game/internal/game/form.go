package game

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/shardhop/shardhop/example-game/internal/problem"
)

var validName = regexp.MustCompile(`^[A-Za-z0-9_-]{3,32}$`)

// credentials is the form of register and login.
type credentials struct {
	Name     string `json:"name"`
	Password string `json:"password"`
	Realm    string `json:"realm"`
}

// validate checks the form and fills in the realm where there is only one.
func (c *credentials) validate(realms []string) error {
	switch {
	case !validName.MatchString(c.Name):
		return unprocessable("bad_name", "A name has 3 to 32 letters, digits, _ or -")
	case len(c.Password) < 8 || len(c.Password) > 128:
		return unprocessable("bad_password", "A password has 8 to 128 bytes")
	case c.Realm == "" && len(realms) == 1:
		c.Realm = realms[0]
	case c.Realm == "":
		return unprocessable("bad_realm", "Choose a realm: "+strings.Join(realms, ", "))
	case !slices.Contains(realms, c.Realm):
		return unprocessable("bad_realm", "There is no such realm; choose one of: "+strings.Join(realms, ", "))
	}
	return nil
}

// gift is the form of transfer. The amount is read by hand, since it has a
// code of its own for everything that is no amount.
type gift struct {
	To     string          `json:"to"`
	Amount json.RawMessage `json:"amount"`
}

// validate checks the form and returns the amount.
func (f *gift) validate(from string) (int64, error) {
	amount, err := strconv.ParseInt(string(f.Amount), 10, 64)
	switch {
	case err != nil || amount < 1:
		return 0, unprocessable("bad_amount", "The amount is a whole number, 1 or more")
	case !validName.MatchString(f.To):
		return 0, unprocessable("bad_name", "A name has 3 to 32 letters, digits, _ or -")
	case f.To == from:
		return 0, unprocessable("bad_name", "You cannot give gold to yourself")
	}
	return amount, nil
}

func unprocessable(code, title string) error {
	return problem.New(http.StatusUnprocessableEntity, code, title)
}

// reply answers with v as JSON.
func reply(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a client that is gone is no trouble
	return nil
}
