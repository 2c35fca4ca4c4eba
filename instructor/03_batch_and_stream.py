"""One correct answer to the second exercise of lab 3: sessions."""


class Sessions:
    def __init__(self, gap):
        self.gap = gap
        self.by_user = {}  # the open sessions of each user: tuples (first time, last time, clicks)

    def add(self, user, time):
        first, last, clicks, others = time, time, 1, []
        for session in self.by_user.get(user, []):
            if session[0] - self.gap <= time <= session[1] + self.gap:
                first, last, clicks = min(first, session[0]), max(last, session[1]), clicks + session[2]
            else:
                others.append(session)
        self.by_user[user] = [*others, (first, last, clicks)]

    def open(self, user):
        return sorted(self.by_user.get(user, []))

    def close(self, watermark):
        final = []
        for user, sessions in self.by_user.items():
            final += [(*each, user) for each in sessions if each[1] + self.gap < watermark]
            self.by_user[user] = [each for each in sessions if each[1] + self.gap >= watermark]
        return sorted(final)
