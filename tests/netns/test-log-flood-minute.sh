# test-log-flood.sh for a minute, so that any growth becomes visible.
# alone
# long: a flood of 60 s
FLOOD_SECONDS=60 . "$(dirname "$0")/test-log-flood.sh"
