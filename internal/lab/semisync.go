package lab

// SemiSync is the option of a pair whose primary commits nothing that its
// standby has not got. One that has no standby goes on alone.
func SemiSync() Option {
	const longerThanAnyTest = "3600000" // milliseconds, after which it would go on alone as well
	return WithArgs("--rpl-semi-sync-master-enabled=1", "--rpl-semi-sync-slave-enabled=1",
		"--rpl-semi-sync-master-wait-point=AFTER_SYNC", "--rpl-semi-sync-master-timeout="+longerThanAnyTest,
		"--rpl-semi-sync-master-wait-no-slave=0")
}

// AwaitAcknowledged waits until the standby of a pair made with [SemiSync]
// acknowledges what its primary writes.
func (p *Pair) AwaitAcknowledged(primary int) {
	p.t.Helper()
	Eventually(p.t, startTimeout, "the standby acknowledges", func() bool {
		var name, status string
		err := scanOnce(p.nodes[primary].RootDSN(), "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_master_status'", &name, &status)
		if err != nil || status != "ON" {
			return false
		}
		var clients int
		err = scanOnce(p.nodes[primary].RootDSN(), "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_master_clients'", &name, &clients)
		return err == nil && clients == 1
	})
}

// Unacknowledged is how many transactions the primary committed alone: its
// standby may lack them.
func (p *Pair) Unacknowledged(primary int) int {
	p.t.Helper()
	var name string
	var n int
	if err := scanOnce(p.nodes[primary].RootDSN(), "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_master_no_tx'", &name, &n); err != nil {
		p.t.Fatalf("lab: acknowledgements: %v", err)
	}
	return n
}
