import { chat } from "./Chat.ts"
export const responses = chat
