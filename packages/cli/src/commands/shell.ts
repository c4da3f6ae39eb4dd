/** `daybook shell`: live shells. Each group of actions is a file in `shell/`. Spec: specs/shell.md. */
import { group } from "../arguments/Verb.ts"
import { attach } from "./shell/Attach.ts"
import { checkpoint, checkpoints, restore } from "./shell/Checkpoints.ts"
import { create } from "./shell/Create.ts"
import { exec } from "./shell/Exec.ts"
import { host } from "./shell/Host.ts"
import { destroy, list } from "./shell/Open.ts"
import { output } from "./shell/Output.ts"
import { watch } from "./shell/Watch.ts"

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
