/** The pages of the site, in the order of the side bar. */
const guides = [
  ["Embed a support bot", "support-bot"],
  ["A structured answer", "structured-answer"],
  ["Permissions from a web page", "permissions"],
  ["Recover after a crash", "recover"],
  ["Test your agent", "test-your-agent"],
  ["Compare models", "compare-models"],
  ["Follow the log", "follow-the-log"],
  ["A Discord bot", "discord-bot"],
  ["Live shells for Claude Desktop", "live-shells"],
  ["Move from another tool", "move-from-another-tool"],
  ["Run it as a service", "run-as-a-service"]
].map(([text, name]) => ({ text, link: `/guides/${name}` }))

const begin = [
  ["Work at the terminal", "terminal"],
  ["Install", "install"]
].map(([text, name]) => ({ text, link: `/guides/${name}` }))

const concepts = ["Log", "Inbox", "Epochs", "Floors", "Owners"].map((text) => ({
  text,
  link: `/concepts/${text.toLowerCase()}`
}))

const reference = [
  { text: "Commands", link: "/reference/commands" },
  { text: "Configuration", link: "/reference/configuration" },
  { text: "HTTP", link: "/reference/http" },
  { text: "Events", link: "/reference/events" },
  // TypeDoc writes whole pages, which are served as they are.
  { text: "API", link: "/api/index.html", target: "_self" }
]

export const sidebar = [
  { text: "Start", items: [{ text: "Five minutes, offline", link: "/" }, ...begin] },
  { text: "Guides", items: guides },
  { text: "Concepts", items: concepts },
  { text: "Reference", items: reference }
]
