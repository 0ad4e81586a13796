"""Full screens over the chat: servers, models, sessions, help, arguments."""
