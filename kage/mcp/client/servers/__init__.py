"""Each configured server through its life: brought up, tended, asleep, replaced, gone."""
