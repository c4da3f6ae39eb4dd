/** The help text of `ctx`, which has no parser that could generate one. */
export const help = (version: string): string => `ctx ${version}: sessions of agents as plain files

Usage: ctx COMMAND AGENT [SESSION] [options]

Commands:
  history AGENT [SESSION]     the conversation, from messages.jsonl
  latest AGENT [SESSION]      the last answer, from latest.md
  resume AGENT [--cwd DIR]    the session to continue, and the event id to send as "after"
  sessions AGENT              every session, the last used first

The default SESSION is the current one (index/current), else default. ctx only reads files: it needs no database and changes
no timestamp.

Options:
  --root DIR     the folder of the files (default: DAYBOOK_ROOT, else ctx beside the database; see daybook --help)
  --uid N        the sessions of this user, if you may read them (default: your own)
  --shared NAME  the sessions of a shared space
  --model        AGENT is the name of a model
  --cwd DIR      resume: the session that ran last in this folder, absolute as the agent sees it
  --json         history: the lines of the file; latest, resume: one object; sessions: one object per line
  --help, --version

Exit codes:
  0   done
  1   no such session, or its files are damaged (EIO: daybook files rebuild)
  2   the command line cannot be used
  13  you may not read the files (EACCES)
  69  the files cannot be read, or the output cannot be written
  70  internal error

Examples:
  ctx latest coder
      the last answer of the agent coder
  ctx history coder review-1 | less
      one of its sessions
  ctx history coder --json | jq -r 'select(.role=="user").content[].text'
      the prompts of its current session
  ctx resume coder --cwd /work
      the session to prompt from this folder
`
