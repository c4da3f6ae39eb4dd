/** Defines the built-in agents: `build` works, `plan` reads and plans. Spec: CF-10, CF-11. */
import { defaultAgent } from "@daybook/log/domain/Values"
import type { Agent } from "../domain/Agent.ts"
import type { Rule } from "../domain/Rule.ts"
import { core } from "./BaseInstructions.ts"

const allow = (permission: string): Rule => ({ permission, resource: "*", verdict: "allow" })

/**
 * May read and search inside the Location, load skills, keep its task list, ask the person and hand work to other
 * agents. Everything else asks: `edit` (also for `apply_patch`), `bash`, `external_directory`, MCP tools.
 */
export const build: Agent = {
  name: defaultAgent,
  description: "Works on the task with every tool; changes and commands ask first.",
  permissions: ["read", "glob", "grep", "skill", "todo", "question", "task"].map(allow)
}

const planning = `You are planning. Read, search and ask as much as you need, and change nothing: no file is edited, and a command may only look. The result is a plan that somebody can carry out without having seen this session: what will change and where, in which order, how it will be checked, what may go wrong, and which decisions are the person's. Do not start on it.`

/** May read and search, but not change files; commands ask. It has no `task`: a child agent might change files. */
export const plan: Agent = {
  name: "plan",
  description: "Looks around and makes a plan; changes no files.",
  mode: "primary",
  prompt: `${core}\n\n${planning}`,
  permissions: [
    ...["read", "glob", "grep", "skill", "todo", "question"].map(allow),
    { permission: "edit", resource: "*", verdict: "deny" },
    { permission: "bash", resource: "*", verdict: "ask" },
    { permission: "task", resource: "*", verdict: "deny" }
  ],
  enterReminder:
    "From here on you are planning: change no files, look and ask as needed, and answer with a plan. This holds even " +
    "where earlier messages asked for changes.",
  leaveReminder: "Planning has ended: changes are allowed again, as far as your permissions go."
}

export const builtins: ReadonlyArray<Agent> = [build, plan]
