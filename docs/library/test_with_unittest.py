import unittest

import hmb


class OrdersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.broker = cls.enterClassContext(hmb.Broker())

    def setUp(self):
        self.broker.reset()  # Each test begins with an empty broker.

    def test_an_order_is_stored(self):
        with hmb.Producer(self.broker.bootstrap_servers) as producer:
            producer.send("orders", b"coffee").result()
        self.assertEqual([record.value for record in self.broker.records("orders")], [b"coffee"])

    def test_the_broker_is_empty_again(self):
        self.assertEqual(self.broker.topics(), [])


if __name__ == "__main__":
    unittest.main()
