package lab

import (
	"fmt"
	"os"
)

// The pure parts.
var (
	ParseFirstOutgoingPort = parseFirstOutgoingPort
	ThreadState            = threadState
	BaseFolder             = baseFolder
	View                   = view
	Program                = program
)

// Folder returns the folder of a server.
func (p *Process) Folder() string { return p.spec.folder }

// Alive reports whether a process runs; one that nobody has waited for yet
// does not.
func Alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && threadState(stat) != 'Z'
}
