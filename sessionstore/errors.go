package sessionstore

import (
	"errors"
	"fmt"
)

var (
	// ErrUnavailable says that Redis was not asked, since it has not answered
	// lately. One call in half a second is, and the first answer ends it.
	ErrUnavailable = errors.New("sessionstore: Redis does not answer")

	// ErrSessionGone says that the session was destroyed or ran out after this
	// request loaded it. Nothing was stored, and nothing will be: a session
	// that is gone stays gone. LoadAndSave lets the handler's answer stand and
	// sends no cookie.
	ErrSessionGone = errors.New("sessionstore: the session is gone")

	// ErrNotSaved says that the handler has run, and that what it put into the
	// session could not be stored. What it did elsewhere may be done.
	ErrNotSaved = errors.New("sessionstore: the session could not be saved")

	// ErrValue says that the session holds a value that cannot be stored: of a
	// type that gob does not know, too large or nested too deep. The error names
	// its key, unless it is the session that is too large. It is the program's
	// fault and not Redis's, so the default answer is a 500: the same request
	// would fail again.
	ErrValue = errors.New("sessionstore: a value cannot be stored")

	// ErrNotLoaded says that the context carries no session that this package
	// loaded. Mount Manager.LoadAndSave, or call Manager.Load; the methods of
	// the embedded scs.SessionManager with the same names do not do.
	ErrNotLoaded = errors.New("sessionstore: no session in the context: is Manager.LoadAndSave mounted?")

	// ErrRenewing says that another request is replacing the session's token in
	// this moment, or that Redis failed while one did. A few seconds later the
	// session is either gone or back.
	ErrRenewing = errors.New("sessionstore: the session's token is being renewed")

	// ErrNoShard refuses a claim that names no shard.
	ErrNoShard = errors.New("sessionstore: a claimed route needs a shard")

	// ErrCursor says that List cannot go on from a cursor. Begin again with an
	// empty one.
	ErrCursor = errors.New("sessionstore: the cursor leads nowhere")

	// ErrContended says that what is stored changed faster than the call could
	// follow: the route that a claim was to change, which then did nothing, or
	// the tokens of sessions that EndAll was to end.
	ErrContended = errors.New("sessionstore: what is stored keeps changing")
)

var (
	// errNoAnswer ends a call to Redis that took too long.
	errNoAnswer = errors.New("sessionstore: no answer in time")

	// errMalformed says that session data cannot be read: nobody wrote it so.
	errMalformed = errors.New("sessionstore: malformed session data")

	// errTooDeep refuses a value of more slices and maps in each other than
	// the codec follows. It may hold itself.
	errTooDeep = fmt.Errorf("nests deeper than %d slices and maps", maxDepth)

	// errTooLarge refuses a value that is too large for a session, all of
	// which is read with every request.
	errTooLarge = fmt.Errorf("takes more than the %d bytes of the largest value", maxValueSize)

	// errSessionTooLarge refuses a session that has grown too large.
	errSessionTooLarge = fmt.Errorf("all together take more than %d bytes", maxSessionSize)

	// errStopped ends a scan whose user has seen enough.
	errStopped = errors.New("sessionstore: stopped")
)
