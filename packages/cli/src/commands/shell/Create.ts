/** `daybook shell create`: opens a live shell and prints its id. Spec: SL-180, SL-181 in specs/shell.md. */
import { Effect } from "effect"
import * as Flags from "../../arguments/Flags.ts"
import { verb } from "../../arguments/Verb.ts"

const cwd = Flags.text("cwd", "DIR", "the folder in which it starts (default: this one; of ssh and docker their own)")
const ssh = Flags.text("ssh", "USER@HOST[:PORT]", "over SSH")
const key = Flags.text("key", "FILE", "ssh: a private key in the folder of keys that the configuration names")
const agent = Flags.toggle("agent", "ssh: use the keys of the SSH agent that the host's SSH_AUTH_SOCK names")
const password = Flags.toggle("password", "ssh: ask for the password, or with --key for the key's passphrase")
const passwordStdin = Flags.toggle("password-stdin", "ssh: read it as the first line of stdin instead")
const fingerprint = Flags.text("fingerprint", "SHA256:...", "ssh: the fingerprint that the host's key must have")
const docker = Flags.text("docker", "CONTAINER", "in a running container")
const user = Flags.text("user", "USER", "docker: the user in the container")
const workspace = Flags.text("workspace", "DIR", "keep checkpoints of this folder, where the shell runs")
const manual = Flags.toggle("no-auto-checkpoint", "no checkpoint before each command that may change files")
const ignore = Flags.repeated(
  "ignore",
  "PATTERN",
  "files that checkpoints leave alone, as in .gitignore",
  Effect.succeed
)
const allow = Flags.text("allow", "NAMES", "only these commands may run: names, separated by commas")
const deny = Flags.text("deny", "NAMES", "these commands may not run")

export const create = verb({
  name: "create",
  summary: "opens a shell and prints its id",
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
    cwd,
    ssh,
    key,
    agent,
    password,
    passwordStdin,
    fingerprint,
    docker,
    user,
    workspace,
    manual,
    ignores: ignore,
    allow,
    deny,
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
    Effect.gen(function* () {
      const { run } = yield* Effect.promise(() => import("../../host/ShellCreate.ts"))
      yield* run(given)
    })
})
