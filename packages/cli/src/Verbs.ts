/** All verbs of `daybook`. */
import * as Command from "@effect/cli/Command"
import type { Verb } from "./arguments/Verb.ts"
import { agents } from "./commands/agents.ts"
import { answer } from "./commands/answer.ts"
import { attach } from "./commands/attach.ts"
import { backup, restore } from "./commands/backup.ts"
import { branch } from "./commands/branch.ts"
import { budget } from "./commands/budget.ts"
import { compact } from "./commands/compact.ts"
import { context } from "./commands/context.ts"
import { interrupt, remove, rename, switchTo } from "./commands/control.ts"
import { continueLast } from "./commands/continue.ts"
import { discord } from "./commands/discord.ts"
import { doctor } from "./commands/doctor.ts"
import { events } from "./commands/events.ts"
import { exportVerb } from "./commands/export.ts"
import { files } from "./commands/files.ts"
import { history } from "./commands/history.ts"
import { importVerb } from "./commands/import.ts"
import { fork } from "./commands/fork.ts"
import { mcp } from "./commands/mcp.ts"
import { messages, show } from "./commands/messages.ts"
import { models } from "./commands/models.ts"
import { permissions } from "./commands/permissions.ts"
import { prompt } from "./commands/prompt.ts"
import { prune } from "./commands/prune.ts"
import { resume } from "./commands/resume.ts"
import { search } from "./commands/search.ts"
import { serve } from "./commands/serve.ts"
import { sessions } from "./commands/sessions.ts"
import { shell } from "./commands/shell.ts"
import { stats } from "./commands/stats.ts"
import { label, tree } from "./commands/tree.ts"
import { token } from "./commands/token.ts"
import { trust } from "./commands/trust.ts"
import { undo } from "./commands/undo.ts"

/** The verbs, as help lists them. */
export const verbs: ReadonlyArray<Verb> = [
  prompt,
  continueLast,
  attach,
  events,
  sessions,
  search,
  history,
  messages,
  show,
  tree,
  context,
  resume,
  answer,
  interrupt,
  undo,
  branch,
  fork,
  label,
  compact,
  budget,
  switchTo,
  rename,
  remove,
  permissions,
  shell,
  mcp,
  agents,
  models,
  trust,
  serve,
  discord,
  token,
  files,
  importVerb,
  exportVerb,
  stats,
  backup,
  restore,
  prune,
  doctor
]

const root = Command.make("daybook").pipe(
  Command.withSubcommands([
    prompt.command,
    continueLast.command,
    attach.command,
    events.command,
    sessions.command,
    search.command,
    history.command,
    messages.command,
    show.command,
    tree.command,
    context.command,
    resume.command,
    answer.command,
    interrupt.command,
    undo.command,
    branch.command,
    fork.command,
    label.command,
    compact.command,
    budget.command,
    switchTo.command,
    rename.command,
    remove.command,
    permissions.command,
    shell.command,
    mcp.command,
    agents.command,
    models.command,
    trust.command,
    serve.command,
    discord.command,
    token.command,
    files.command,
    importVerb.command,
    exportVerb.command,
    stats.command,
    backup.command,
    restore.command,
    prune.command,
    doctor.command
  ])
)

export const parser = (version: string) => Command.run(root, { name: "daybook", version, executable: "daybook" })
