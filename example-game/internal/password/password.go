// Package password hashes passwords with argon2id, a few at a time: one hash
// takes megabytes and milliseconds on purpose, and a burst of sign-ins must
// not take the machine from those who play.
package password

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/alexedwards/argon2id"
)

// ErrBusy says that too many others want a hash, and that the wait is over.
var ErrBusy = errors.New("password: too many sign-ins at once")

// defaultParams are the smallest that OWASP recommends: 19 MiB and two passes,
// about 20 ms on one core.
var defaultParams = argon2id.Params{Memory: 19 * 1024, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

// maxWait is how long a sign-in waits for its turn.
const maxWait = 5 * time.Second

// Hasher makes and checks hashes. Its methods are safe for use by several
// goroutines.
type Hasher struct {
	slots chan struct{}
	decoy string // what an unknown name's password is compared with
}

// NewHasher returns a hasher that uses as many cores as there are.
func NewHasher() (*Hasher, error) {
	decoy, err := argon2id.CreateHash("nobody's password", &defaultParams)
	if err != nil {
		return nil, fmt.Errorf("password: %w", err)
	}
	return &Hasher{slots: make(chan struct{}, runtime.GOMAXPROCS(0)), decoy: decoy}, nil
}

// Hash returns the hash of a password with its parameters and salt, in the
// usual text form. The error may be ErrBusy.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	if err := h.enter(ctx); err != nil {
		return "", err
	}
	defer h.leave()
	return argon2id.CreateHash(password, &defaultParams)
}

// Matches reports whether hash is that of password. An empty hash, for a name
// that nobody has, matches nothing and takes as long. The error may be ErrBusy.
func (h *Hasher) Matches(ctx context.Context, password, hash string) (bool, error) {
	if err := h.enter(ctx); err != nil {
		return false, err
	}
	defer h.leave()
	if hash == "" {
		_, err := argon2id.ComparePasswordAndHash(password, h.decoy)
		return false, err
	}
	return argon2id.ComparePasswordAndHash(password, hash)
}

func (h *Hasher) enter(ctx context.Context) error {
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case h.slots <- struct{}{}:
		return nil
	case <-timer.C:
		return ErrBusy
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *Hasher) leave() { <-h.slots }
