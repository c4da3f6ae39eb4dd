/** The help of `ctx`, a text of its own: it has no parser that could print one. */
export const help = (version: string): string => `ctx ${version}: sessions of agents as plain files

Usage: ctx COMMAND AGENT [SESSION] [options]

Commands:
  history AGENT [SESSION]     the conversation, from messages.jsonl
  latest AGENT [SESSION]      the last answer, from latest.md
  resume AGENT [--cwd DIR]    the session to go on with, and the event id to give as "after"
  sessions AGENT              every session, the last used first

Without SESSION: the current one (index/current), else default. Files are only read: no database is needed, and no
timestamp changes.

Options:
  --root DIR     the folder of the files; else DAYBOOK_ROOT, else ctx beside the database (daybook --help)
  --uid N        the sessions of this user, if you may read them (your own)
  --shared NAME  the sessions of a shared space
  --model        AGENT is the name of a model
  --cwd DIR      resume: the session that ran last in this folder, absolute as the agent sees it
  --json         history: the lines as they are; latest, resume: one object; sessions: an object a line
  --help, --version

Exit codes:
  0   done
  1   no such session, or its files are damaged (EIO: daybook files rebuild)
  2   the command line cannot be used
  13  not yours to read (EACCES)
  69  the files cannot be reached, or the output cannot be written
  70  internal error

Examples:
  ctx latest coder
      what the agent coder said last
  ctx history coder review-1 | less
      one of its conversations
  ctx history coder --json | jq -r 'select(.role=="user").content[].text'
      what it was asked
  ctx resume coder --cwd /work
      which session to send to from this folder
`
