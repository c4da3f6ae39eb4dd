/** `daybook shell`: live shells. Each action loads its work when it runs. Spec: SL-180..SL-187 in specs/shell.md. */
import { Effect } from "effect"
import * as Flags from "../arguments/Flags.ts"
import { group, verb } from "../arguments/Verb.ts"
import { UsageError } from "../support/Errors.ts"
import { watch } from "./shellWatch.ts"

/** Runs what a module does, which is loaded for it. */
const loaded = <M, E, R>(load: () => Promise<M>, use: (module: M) => Effect.Effect<void, E, R>) =>
  Effect.flatMap(Effect.promise(load), use)

const calls = () => import("../host/ShellCalls.ts")

const list = verb({
  name: "list",
  summary: "list the open shells",
  words: "",
  details: [
    "Prints a line for each open shell, in the order of their opening: id, transport, working folder, and how long it is " +
      "idle or how many commands run or wait. Without a host it prints nothing, and starts none."
  ],
  given: { json: Flags.json },
  examples: [
    ["daybook shell list", "the open shells"],
    ["daybook shell list --json | jq -r .session_id", "their ids"]
  ],
  overServer: true,
  run: (given) => loaded(calls, (work) => work.list(given))
})

const destroy = verb({
  name: "destroy",
  summary: "close shells and end what runs in them",
  words: "ID...",
  details: [
    "Closes shells, and returns when nothing of them runs any more: neither a running command nor a background job. The " +
      "exit code is 3 if one of them is not open; the others are closed all the same."
  ],
  given: { ids: Flags.many("ID"), all: Flags.toggle("all", "every open shell"), json: Flags.json },
  examples: [
    ["daybook shell destroy 1_local 2_docker_web", "closes two shells"],
    ["daybook shell destroy --all", "closes every shell"]
  ],
  run: (given) =>
    Effect.gen(function* () {
      if (given.all === given.ids.length > 0) {
        return yield* new UsageError({ message: "shell destroy: give the ids of shells, or --all" })
      }
      yield* loaded(calls, (work) => work.destroy(given))
    })
})

const output = verb({
  name: "output",
  summary: "print the whole output of a command",
  words: "HANDLE",
  details: [
    "Prints the whole output of a command, without secrets, by the handle in a result from which something was left out: of " +
      "daybook shell exec and of daybook mcp. The outputs stay on disk when their shell and its host have ended, until newer " +
      "ones take their place. With --json, each page is a line."
  ],
  given: {
    handle: Flags.one("HANDLE"),
    stderr: Flags.toggle("stderr", "what the command printed to stderr, instead of stdout"),
    json: Flags.json
  },
  examples: [["daybook shell output 1_local.3.267733b9 | less", "everything that the command printed"]],
  run: (given) => loaded(calls, (work) => work.run(given))
})

const host = verb({
  name: "host",
  summary: "keep the shells; create starts it in the background",
  words: "",
  details: [
    "A shell outlives the command that created it, because a host keeps it: one process for each data folder, which listens " +
      "on a socket that only its user can use. daybook shell create starts one if none runs, with the settings and the " +
      "environment of that moment. It ends a minute after its last shell closed. A signal closes every shell and ends it.",
    "This verb runs it in the foreground, for example under a supervisor. It prints ready when it listens."
  ],
  given: {},
  examples: [["daybook shell host", "keeps shells until a signal"]],
  run: () =>
    loaded(
      () => import("../host/ShellHostProcess.ts"),
      ({ run }) => run()
    )
})

const exec = verb({
  name: "exec",
  summary: "run a command in a shell",
  words: "ID -- COMMAND",
  details: [
    "Runs a command in an open shell, after the commands before it, and prints its output and errors while it runs, without " +
      "terminal sequences and secrets. Several words are joined with spaces, as ssh does; quote the command to keep the shell " +
      "that you type in from reading it. The exit code is the command's: 124 after a timeout, 130 after Ctrl-C, which stops " +
      "the command and leaves the shell. The exit codes of daybook itself come with a sentence that begins with daybook:.",
    "With --grep, --head, --tail or --max-chars, the part of the output that they keep is printed at the end; daybook shell " +
      "output prints all of it. With --json, the whole result is one line of JSON."
  ],
  given: {
    id: Flags.one("ID"),
    words: Flags.many("COMMAND"),
    timeout: Flags.integer("timeout", "SECONDS", "stop the command after that long (default and most: 3600)", 1),
    grep: Flags.text("grep", "PATTERN", "only lines that match a pattern of RE2's syntax"),
    context: Flags.integer("context", "N", "with --grep: also N lines before and after each match", 0),
    head: Flags.integer("head", "N", "only the first N lines; with --tail, both ends", 1),
    tail: Flags.integer("tail", "N", "only the last N lines", 1),
    maxChars: Flags.integer("max-chars", "N", "at most N characters of each stream (default here: 100000)", 1),
    stdin: Flags.toggle("stdin", "send this command's stdin, as text; the command's input is empty without it"),
    json: Flags.json
  },
  examples: [
    ["daybook shell exec 1_local -- 'cd /srv && make'", "runs it there, and stays in /srv"],
    [
      "daybook shell exec 1_local --grep 'error|warning' --context 2 -- make",
      "only those lines, with lines around them"
    ],
    ["daybook shell exec 1_ssh_build@host --stdin -- 'cat >notes' <notes", "sends a file"]
  ],
  run: (given) =>
    loaded(
      () => import("../host/ShellExec.ts"),
      ({ run }) => run(given)
    )
})

const create = verb({
  name: "create",
  summary: "open a shell and print its id",
  words: "",
  details: [
    "Opens a shell on this machine, over SSH or in a container, and prints its id. It stays open until it is destroyed, " +
      "until it has been idle for long, or until its host ends. Its folder, variables and jobs persist from command to command.",
    "Without --key, --agent or --password-stdin, ssh asks for a password at the terminal, without echo. A password is never " +
      "an argument.",
    "The lists of --allow and --deny tighten the operator's policy. A local shell gets harmless variables of the host's " +
      "environment, which is that of the command that started the host."
  ],
  given: {
    cwd: Flags.text("cwd", "DIR", "the folder in which it starts (default: this one; of ssh and docker their own)"),
    ssh: Flags.text("ssh", "USER@HOST[:PORT]", "over SSH"),
    key: Flags.text("key", "FILE", "ssh: a private key in the folder of keys that the configuration names"),
    agent: Flags.toggle("agent", "ssh: use the keys of the SSH agent that the host's SSH_AUTH_SOCK names"),
    password: Flags.toggle("password", "ssh: ask for the password, or with --key for the key's passphrase"),
    passwordStdin: Flags.toggle("password-stdin", "ssh: read the password from the first line of stdin"),
    fingerprint: Flags.text("fingerprint", "SHA256:...", "ssh: the fingerprint that the host's key must have"),
    docker: Flags.text("docker", "CONTAINER", "in a running container"),
    user: Flags.text("user", "USER", "docker: the user in the container"),
    workspace: Flags.text("workspace", "DIR", "keep checkpoints of this folder, where the shell runs"),
    manual: Flags.toggle("no-auto-checkpoint", "no checkpoint before each command that may change files"),
    ignores: Flags.repeated(
      "ignore",
      "PATTERN",
      "files that checkpoints leave alone, as in .gitignore",
      Effect.succeed
    ),
    allow: Flags.text("allow", "NAMES", "only these commands may run: names, separated by commas"),
    deny: Flags.text("deny", "NAMES", "these commands may not run"),
    json: Flags.json
  },
  examples: [
    ["daybook shell create", "a shell in this folder, such as 1_local"],
    ["daybook shell create --ssh build@host --agent", "a shell over SSH, with the keys of the agent"],
    [
      "pass build | daybook shell create --ssh build@host:2222 --password-stdin",
      "with the password of another program"
    ],
    ["daybook shell create --docker web --user app --cwd /srv", "a shell in the container web"],
    ["daybook shell create --workspace . --deny git,rm", "with checkpoints of this folder, and without two commands"]
  ],
  run: (given) =>
    loaded(
      () => import("../host/ShellCreate.ts"),
      ({ run }) => run(given)
    )
})

const id = Flags.one("ID")

const checkpoint = verb({
  name: "checkpoint",
  summary: "keep the files of a shell's workspace",
  words: "ID [LABEL]",
  details: [
    "Keeps the files of the workspace that the shell was created with, after the commands before, and prints the id of the " +
      "checkpoint. Ignored files and files with secrets are not kept."
  ],
  given: { id, label: Flags.optional("LABEL"), json: Flags.json },
  examples: [['daybook shell checkpoint 1_local "before the upgrade"', "keeps the files under a label"]],
  run: (given) => loaded(calls, (work) => work.checkpoint(given))
})

const checkpoints = verb({
  name: "checkpoints",
  summary: "list the checkpoints of a shell",
  words: "ID",
  details: [
    "Prints a line for each checkpoint, the newest first: id, time (UTC), who made it (asked, command or restore), and its " +
      "label or the command that came after it."
  ],
  given: { id, json: Flags.json },
  examples: [["daybook shell checkpoints 1_local", "the checkpoints of the shell"]],
  run: (given) => loaded(calls, (work) => work.checkpoints(given))
})

const restore = verb({
  name: "restore",
  summary: "bring the files back to a checkpoint",
  words: "ID [CHECKPOINT]",
  details: [
    "Brings the files of the workspace back to a checkpoint, by default the most recent one that no restore made, and prints " +
      "each file with what happened to it: + is back, ~ is changed back, - is removed. Files that came later are removed; " +
      "ignored files stay. The state before is kept as a checkpoint too."
  ],
  given: { id, checkpointID: Flags.optional("CHECKPOINT"), json: Flags.json },
  examples: [
    ["daybook shell restore 1_local", "undoes the last command that changed files"],
    ["daybook shell restore 1_local 3f9c01", "brings the files back to that checkpoint"]
  ],
  run: (given) => loaded(calls, (work) => work.restore(given))
})

const attach = verb({
  name: "attach",
  summary: "a console on a shell, line by line",
  words: "ID",
  details: [
    "Reads commands at the terminal and runs each in the shell, with its output as it comes. A command with an open quote, " +
      "group or here-document goes on in the next line. Ctrl-C stops the running command, and clears the line at the prompt. " +
      "Ctrl-D leaves the shell open; exit closes it. Commands get no input, and no terminal of their own: vi does not work.",
    "If stdin is no terminal, the commands are its lines, and the exit code is that of the last one."
  ],
  given: { id: Flags.one("ID") },
  examples: [
    ["daybook shell attach 1_local", "a console; Ctrl-D leaves it"],
    ["daybook shell attach 1_local <deploy.sh", "runs the lines of a file, one after another"]
  ],
  run: (given) =>
    loaded(
      () => import("../host/ShellConsole.ts"),
      ({ run }) => run(given)
    )
})

export const shell = group({
  name: "shell",
  summary: "open live shells, run commands in them, watch them",
  words: "ACTION",
  details: [
    "A live shell outlives one command and the process that created it: its folder, variables and jobs persist. It runs on " +
      "this machine, over SSH or in a container. What shells ran is recorded: daybook shell watch shows it.",
    "daybook shell ACTION --help tells more about an action."
  ],
  actions: [create, exec, attach, list, destroy, output, checkpoint, checkpoints, restore, watch, host],
  examples: [
    ["daybook shell create --ssh build@host --agent", "opens a shell over SSH and prints its id: 1_ssh_build@host"],
    ["daybook shell exec 1_ssh_build@host -- 'cd /srv && make'", "runs a command in it"],
    ["daybook shell attach 1_ssh_build@host", "a console on it; Ctrl-D leaves it"],
    ["daybook shell list", "the open shells"],
    ["daybook shell destroy 1_ssh_build@host", "closes it"],
    ["daybook shell watch --follow", "the commands of all live shells, old ones first, then new ones"]
  ]
})
