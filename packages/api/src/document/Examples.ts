/** Bodies of requests. Pure. */

/** A body for each endpoint that has one: it fits the endpoint's schema. */
export const examples: Readonly<Record<string, unknown>> = {
  create: { location: { directory: "/home/user/project" }, title: "Fix the totals" },
  named: { location: { directory: "/home/user/project" }, title: "Fix the totals" },
  addressed: { address: { scope: "private", uid: 1000, kind: "agent", name: "build", session: "default" } },
  rename: { title: "Fix the totals of invoices" },
  switchAgent: { agent: "plan" },
  switchModel: { providerID: "anthropic", id: "claude-sonnet-4-5" },
  move: { directory: "/home/user/other" },
  place: { address: { scope: "private", uid: 1000, kind: "agent", name: "build", session: "totals" } },
  setBudget: { cost: 2.5, tokens: 1_000_000 },
  label: { label: "before the change" },
  prompt: { id: "msg_client-1", prompt: { text: "Why do the totals differ by a cent?" }, delivery: "steer" },
  ask: { id: "msg_client-2", prompt: { text: "Which file rounds the totals?" } },
  interrupt: {},
  branch: { messageID: "msg_client-1", summary: false },
  fork: { messageID: "msg_client-1", title: "Another way" },
  undo: { dryRun: true },
  redo: { dryRun: true },
  answer: { answers: ["the second one"] },
  decide: { decision: "once" }
}
