/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Loads on trial (`pfctl -f FILE --confirm SECONDS`). The maps keep the rule set that was in force
 * before such a load. The sweep's timer makes it valid again if nobody has confirmed the load in
 * time, so the filter goes back even if no process is left.
 *
 * Of the timer and of pfctl, the one that sets `confirm_by` to 0 decides.
 */
#ifndef PF_TRIAL_H
#define PF_TRIAL_H

#include "config.h"
#include "flush.h"
#include "kern.h"
#include "time.h"

/* Ends the trial and makes the rule set before it valid. Returns 1, or 0 if the trial has ended
 * already. States of rules that only the load on trial had end, as those of flushed sources do,
 * unless the load keeps them. */
__inline int go_back(struct pf_status *status)
{
	__u32 due = status->confirm_by;

	if (!due || __sync_val_compare_and_swap(&status->confirm_by, due, 0) != due)
		return 0;
	if (status->ends_states && !__sync_lock_test_and_set(&status->ending, 1))
		__sync_fetch_and_add(&status->flushing, 1);
	if (!status->back_running && status->running) {
		status->running = 0;
		status->since = uptime();
	}
	status->generation = status->back;
	return 1;
}

/* Goes back if the time for the confirmation is over. */
__inline void go_back_if_due(struct pf_status *status)
{
	if (status->confirm_by && (__s32)(uptime() - status->confirm_by) >= 0)
		go_back(status);
}

/* Notes that no state is left of the rules of a trial that failed. */
__inline void note_ended(struct pf_status *status)
{
	if (__sync_lock_test_and_set(&status->ending, 0))
		__sync_fetch_and_sub(&status->flushing, 1);
}

#endif /* PF_TRIAL_H */
