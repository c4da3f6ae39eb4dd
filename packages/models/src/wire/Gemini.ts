import { chat } from "./Chat.ts"
export const gemini = chat
